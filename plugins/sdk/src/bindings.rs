//! What wit-bindgen makes of `wit/0.2.0`: one module for each world, over one module of what both share.
//!
//! A plugin is described by the sections that its modules here leave in it, whether their functions are called or not. So each world
//! is a feature, and a plugin that is built for WebAssembly has one of them: its component then imports nothing of the other's.

#[allow(unsafe_code, missing_docs, clippy::all, clippy::pedantic, reason = "generated code")]
pub mod shared {
    wit_bindgen::generate!({
        path: "../../wit/0.2.0",
        inline: "
            package waybill:guest;
            world shared {
                import waybill:partner/types@0.2.0;
                import waybill:partner/log@0.2.0;
            }
        ",
        additional_derives: [PartialEq],
        generate_all,
        generate_unused_types: true,
    });
}

#[cfg(feature = "builder")]
#[allow(unsafe_code, missing_docs, clippy::all, clippy::pedantic, reason = "generated code")]
pub mod builder {
    wit_bindgen::generate!({
        path: "../../wit/0.2.0",
        world: "builder",
        with: {
            "waybill:partner/types@0.2.0": crate::bindings::shared::waybill::partner::types,
            "waybill:partner/log@0.2.0": crate::bindings::shared::waybill::partner::log,
        },
        additional_derives: [PartialEq],
        pub_export_macro: true,
        export_macro_name: "export_world",
        default_bindings_module: "waybill_guest::export::builder",
    });
}

#[cfg(feature = "destination")]
#[allow(unsafe_code, missing_docs, clippy::all, clippy::pedantic, reason = "generated code")]
pub mod destination {
    wit_bindgen::generate!({
        path: "../../wit/0.2.0",
        world: "destination",
        with: {
            "waybill:partner/types@0.2.0": crate::bindings::shared::waybill::partner::types,
            "waybill:partner/log@0.2.0": crate::bindings::shared::waybill::partner::log,
        },
        additional_derives: [PartialEq],
        pub_export_macro: true,
        export_macro_name: "export_world",
        default_bindings_module: "waybill_guest::export::destination",
    });
}
