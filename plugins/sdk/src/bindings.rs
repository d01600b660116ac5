//! What wit-bindgen makes of `wit/0.1.0`: one module for each world, over one set of shared types.
//!
//! The export macros are public, so that the sections that describe a world's exports are linked only into the crate that
//! implements it.

#[allow(unsafe_code, missing_docs, clippy::all, clippy::pedantic, reason = "generated code")]
pub mod builder {
    wit_bindgen::generate!({
        path: "../../wit/0.1.0",
        world: "builder",
        additional_derives: [PartialEq],
        pub_export_macro: true,
        export_macro_name: "export_world",
        default_bindings_module: "waybill_guest::export::builder",
    });
}

#[allow(unsafe_code, missing_docs, clippy::all, clippy::pedantic, reason = "generated code")]
pub mod destination {
    wit_bindgen::generate!({
        path: "../../wit/0.1.0",
        world: "destination",
        with: {
            "waybill:partner/types@0.1.0": crate::bindings::builder::waybill::partner::types,
            "waybill:partner/log@0.1.0": crate::bindings::builder::waybill::partner::log,
        },
        additional_derives: [PartialEq],
        pub_export_macro: true,
        export_macro_name: "export_world",
        default_bindings_module: "waybill_guest::export::destination",
    });
}
