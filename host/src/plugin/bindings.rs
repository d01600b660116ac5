//! Generated from `wit/`: the host's side of both worlds, in the newest version of the contract and, in [`v0_1`], what an
//! earlier one has of its own. Imports are linked by [`super::worlds::link`], under the names of each version.

/// The world of builders.
pub(super) mod builder {
    wasmtime::component::bindgen!({
        path: "../wit/0.2.0",
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
#[expect(clippy::too_many_arguments, reason = "the contract's `deliver`, in generated code")]
pub(super) mod destination {
    wasmtime::component::bindgen!({
        path: "../wit/0.2.0",
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

/// 0.1.0: its jobs have no `created`, and its calls no `auxiliary`. Everything that a plugin imports is the same.
pub(super) mod v0_1 {
    pub mod builder {
        wasmtime::component::bindgen!({
            path: "../wit/0.1.0",
            world: "builder",
            imports: { default: async | trappable },
            exports: { default: async },
            with: {
                "waybill:partner/source": crate::plugin::bindings::builder::waybill::partner::source,
                "waybill:partner/output": crate::plugin::bindings::builder::waybill::partner::output,
                "waybill:partner/entropy": crate::plugin::bindings::builder::waybill::partner::entropy,
                "waybill:partner/log": crate::plugin::bindings::builder::waybill::partner::log,
            },
        });
    }

    pub mod destination {
        wasmtime::component::bindgen!({
            path: "../wit/0.1.0",
            world: "destination",
            imports: { default: async | trappable },
            exports: { default: async },
            with: {
                "waybill:partner/types": super::builder::waybill::partner::types,
                "waybill:partner/log": crate::plugin::bindings::builder::waybill::partner::log,
                "waybill:partner/remote": crate::plugin::bindings::destination::waybill::partner::remote,
                "waybill:partner/evidence": crate::plugin::bindings::destination::waybill::partner::evidence,
            },
        });
    }

    pub use builder::waybill::partner::types;
}

pub(super) use builder::waybill::partner::{entropy, log, output, source, types};
pub(super) use destination::waybill::partner::{evidence, remote};
