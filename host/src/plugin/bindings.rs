//! Generated from `wit/0.1.0`: the host's side of both worlds. A later version of the contract gets modules of its own
//! beside these, over the same internal model.

/// The world of builders.
pub(super) mod builder {
    wasmtime::component::bindgen!({
        path: "../wit/0.1.0",
        world: "builder",
        imports: { default: async | trappable },
        exports: { default: async },
        with: {
            "waybill:partner/source.rows": crate::plugin::worlds::source::OpenRows,
            "waybill:partner/output.file": crate::plugin::worlds::output::OutputFile,
        },
    });
}

/// The world of destinations. Types and the log are the builder world's, so that they are converted once.
pub(super) mod destination {
    wasmtime::component::bindgen!({
        path: "../wit/0.1.0",
        world: "destination",
        imports: { default: async | trappable },
        exports: { default: async },
        with: {
            "waybill:partner/types": super::builder::waybill::partner::types,
            "waybill:partner/log": super::builder::waybill::partner::log,
            "waybill:partner/remote.reader": crate::remote::Reader,
            "waybill:partner/remote.writer": crate::remote::Writer,
        },
    });
}

pub(super) use builder::waybill::partner::{entropy, log, output, source, types};
pub(super) use destination::waybill::partner::{evidence, remote};
