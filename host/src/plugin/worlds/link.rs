//! What a component of each world is linked with, under the names that its version of the contract gives them.
//!
//! All versions that are served import the same interfaces with the same types, so one implementation serves them under
//! each version's names. A version that needs another implementation gets one here; the linker compares types when a
//! component is prepared, so nothing is served by mistake.

use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, Resource, ResourceType};

use super::State;
use super::output::OutputFile;
use super::source::OpenRows;
use crate::plugin::bindings::{entropy, log, output, remote, source, types};
use crate::plugin::component::{ContractVersion, PACKAGE, World};
use crate::remote::{Reader, Writer};

/// Links one function: its name in the contract, the method that answers, and the types of its arguments.
macro_rules! function {
    ($interface:expr, $name:literal, $method:path, $($argument:ident: $of:ty),+) => {
        $interface.func_wrap_async($name, |mut store: StoreContextMut<'_, State>, ($($argument,)+): ($($of,)+)| {
            Box::new(async move { $method(store.data_mut(), $($argument),+).await.map(|answer| (answer,)) })
        })?
    };
}

/// Links a resource, with the method that ends a handle's life.
macro_rules! resource {
    ($interface:expr, $name:literal, $of:ty, $drop:path) => {
        $interface.resource_async($name, ResourceType::host::<$of>(), |mut store, number| {
            Box::new(async move { $drop(store.data_mut(), Resource::new_own(number)).await })
        })?
    };
}

/// Everything that a component of this world may import in this version.
pub(in crate::plugin) fn link(
    linker: &mut Linker<State>,
    world: World,
    version: ContractVersion,
) -> wasmtime::Result<()> {
    let name = |interface: &str| format!("{PACKAGE}/{interface}@{}", version.name());
    let _types_only = linker.instance(&name("types"))?;
    linker.instance(&name("log"))?.func_wrap_async(
        "write",
        |mut store: StoreContextMut<'_, State>, (level, message): (log::Level, String)| {
            Box::new(async move { log::Host::write(store.data_mut(), level, message).await })
        },
    )?;
    match world {
        World::Builder => builder(linker, name),
        World::Destination => destination(linker, name),
    }
}

fn builder(linker: &mut Linker<State>, name: impl Fn(&str) -> String) -> wasmtime::Result<()> {
    let mut instance = linker.instance(&name("source"))?;
    resource!(instance, "rows", OpenRows, source::HostRows::drop);
    function!(instance, "open", source::Host::open, query: String, parameters: Vec<types::Setting>);
    function!(instance, "[method]rows.columns", source::HostRows::columns, rows: Resource<OpenRows>);
    function!(instance, "[method]rows.next", source::HostRows::next, rows: Resource<OpenRows>, most: u32);
    let mut instance = linker.instance(&name("output"))?;
    resource!(instance, "file", OutputFile, output::HostFile::drop);
    function!(instance, "[method]file.write", output::HostFile::write, file: Resource<OutputFile>, bytes: Vec<u8>);
    let mut instance = linker.instance(&name("entropy"))?;
    function!(instance, "random", entropy::Host::random, bytes: u32);
    Ok(())
}

fn destination(linker: &mut Linker<State>, name: impl Fn(&str) -> String) -> wasmtime::Result<()> {
    let _types_only = linker.instance(&name("evidence"))?;
    let mut instance = linker.instance(&name("remote"))?;
    resource!(instance, "reader", Reader, remote::HostReader::drop);
    function!(instance, "[method]reader.stat", remote::HostReader::stat, look: Resource<Reader>, name: String);
    function!(
        instance, "[method]reader.entries", remote::HostReader::entries,
        look: Resource<Reader>, directory: String, prefix: String, most: u32
    );
    function!(
        instance, "[method]reader.read", remote::HostReader::read,
        look: Resource<Reader>, name: String, offset: u64, most: u32
    );
    function!(
        instance, "[method]reader.digest", remote::HostReader::digest,
        look: Resource<Reader>, name: String, algorithm: String
    );
    resource!(instance, "writer", Writer, remote::HostWriter::drop);
    function!(
        instance, "[method]writer.make-directory", remote::HostWriter::make_directory,
        send: Resource<Writer>, name: String
    );
    function!(instance, "[method]writer.send", remote::HostWriter::send, send: Resource<Writer>);
    function!(instance, "[method]writer.publish", remote::HostWriter::publish, send: Resource<Writer>);
    function!(instance, "[method]writer.publish-over", remote::HostWriter::publish_over, send: Resource<Writer>);
    function!(
        instance, "[method]writer.put", remote::HostWriter::put,
        send: Resource<Writer>, name: String, bytes: Vec<u8>
    );
    Ok(())
}
