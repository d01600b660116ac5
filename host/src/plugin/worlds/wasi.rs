//! An empty WASI, for languages whose runtime imports it whether a plugin uses it or not, as Python's does.
//!
//! What a runtime asks for by itself is answered with nothing: no arguments, no environment, no directory. What it writes to
//! its standard streams goes to the log: a traceback is all that an author has. Everything else ends the call with a sentence
//! that names the function: a plugin has no file and no socket, and must learn it at the first try. Nothing here hands
//! a plugin anything that the contract does not.
//!
//! The clock stands still at the job's creation, which the contract tells too: libraries read a clock in passing (a log, an
//! archive's header), and what they make of it is the same at every call. Waiting for it to move is refused.
//!
//! Randomness is a builder's only, as in the contract. A destination's runtime is fed zeros, because it may seed itself
//! before the plugin runs, and whatever a destination computes must be the same at the next call.

use rand::TryRng as _;
use time::OffsetDateTime;
use wasmtime::StoreContextMut;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker, Resource, ResourceAny, ResourceType, Val};

use super::State;
use crate::plugin::bindings::log::Level;
use crate::plugin::call::{HostTrap, LimitKind};
use crate::plugin::component::World;

/// Packages of WASI that are answered, in every version with synchronous functions.
const PACKAGES: [&str; 6] = ["cli", "clocks", "filesystem", "io", "random", "sockets"];
const VERSIONS: &str = "0.2.";
/// Bytes of one write to a standard stream, and of one request for randomness.
const MOST_BYTES: u64 = 4096;

/// The standard streams by the number that their handles carry.
const STDIN: u32 = 0;
const STDOUT: u32 = 1;
const STDERR: u32 = 2;

/// True if an import of this name is answered.
pub(in crate::plugin) fn is_served(import: &str) -> bool {
    let Some((interface, version)) = import.strip_prefix("wasi:").and_then(|rest| rest.split_once('@')) else {
        return false;
    };
    version.starts_with(VERSIONS) && interface.split_once('/').is_some_and(|(package, _)| PACKAGES.contains(&package))
}

/// Defines what the component imports of WASI, under the very versions that it names.
pub(in crate::plugin) fn define(
    linker: &mut Linker<State>,
    component: &Component,
    world: World,
) -> wasmtime::Result<()> {
    let engine = component.engine();
    for (import, item) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(interface) = item.ty else { continue };
        if !is_served(import) {
            continue;
        }
        let name = import.split('@').next().unwrap_or(import);
        let mut instance = linker.instance(import)?;
        for (function, item) in interface.exports(engine) {
            match item.ty {
                ComponentItem::Resource(_) => instance.resource(function, ResourceType::host::<()>(), |_, _| Ok(()))?,
                ComponentItem::ComponentFunc(_) => {
                    let asked = format!("{name}#{function}");
                    instance.func_new(function, move |mut store, _, arguments, results| {
                        let lent = take_back(&mut store, arguments)?;
                        let value = answer(&mut store, world, &asked, lent, arguments)?;
                        // A function without a result leaves no place for one.
                        if let Some(result) = results.first_mut() {
                            *result = value;
                        }
                        Ok(())
                    })?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// What a function answers. One without a result is answered too.
fn answer(
    store: &mut StoreContextMut<'_, State>,
    world: World,
    asked: &str,
    lent: Option<u32>,
    arguments: &[Val],
) -> wasmtime::Result<Val> {
    Ok(match asked {
        "wasi:cli/environment#get-environment"
        | "wasi:cli/environment#get-arguments"
        | "wasi:filesystem/preopens#get-directories" => Val::List(Vec::new()),
        "wasi:cli/environment#initial-cwd"
        | "wasi:cli/terminal-stdin#get-terminal-stdin"
        | "wasi:cli/terminal-stdout#get-terminal-stdout"
        | "wasi:cli/terminal-stderr#get-terminal-stderr" => Val::Option(None),
        "wasi:cli/stdin#get-stdin" => stream(store, STDIN)?,
        "wasi:cli/stdout#get-stdout" => stream(store, STDOUT)?,
        "wasi:cli/stderr#get-stderr" => stream(store, STDERR)?,
        "wasi:io/streams#[method]output-stream.check-write" => Val::Result(Ok(Some(Box::new(Val::U64(MOST_BYTES))))),
        "wasi:io/streams#[method]output-stream.write"
        | "wasi:io/streams#[method]output-stream.blocking-write-and-flush" => {
            written(store, lent, arguments)?;
            Val::Result(Ok(None))
        }
        "wasi:io/streams#[method]output-stream.flush" | "wasi:io/streams#[method]output-stream.blocking-flush" => {
            Val::Result(Ok(None))
        }
        "wasi:clocks/wall-clock#now" => standing(store.data().clock),
        "wasi:clocks/wall-clock#resolution" => datetime(1, 0),
        "wasi:clocks/monotonic-clock#now" => Val::U64(0),
        "wasi:clocks/monotonic-clock#resolution" => Val::U64(1_000_000_000),
        "wasi:random/random#get-random-bytes" => {
            let [Val::U64(most)] = arguments else { return Err(unforeseen(asked)) };
            Val::List(random(world, *most)?.into_iter().map(Val::U8).collect())
        }
        "wasi:random/random#get-random-u64" => {
            let bytes = random(world, 8)?;
            Val::U64(bytes.into_iter().fold(0, |number, byte| (number << 8) | u64::from(byte)))
        }
        _ => {
            let has = match world {
                World::Builder => "rows, a file under construction, randomness and a log",
                World::Destination => "the partner's endpoint and a log",
            };
            return Err(wasmtime::Error::msg(format!(
                "it called {asked}, which a plugin does not have: it has {has}, and no file system, socket, environment or clock that moves"
            )));
        }
    })
}

/// The number of the handle that the call is about. A handle is lent for a call, and must be let go before it returns.
fn take_back(store: &mut StoreContextMut<'_, State>, arguments: &[Val]) -> wasmtime::Result<Option<u32>> {
    let mut number = None;
    for argument in arguments {
        if let Val::Resource(handle) = argument {
            let handle = handle.try_into_resource::<()>(&mut *store)?;
            number = number.or(Some(handle.rep()));
        }
    }
    Ok(number)
}

fn stream(store: &mut StoreContextMut<'_, State>, number: u32) -> wasmtime::Result<Val> {
    Ok(Val::Resource(ResourceAny::try_from_resource(Resource::<()>::new_own(number), store)?))
}

/// Text of a standard stream, for the log.
fn written(store: &mut StoreContextMut<'_, State>, stream: Option<u32>, arguments: &[Val]) -> wasmtime::Result<()> {
    let [_, Val::List(bytes)] = arguments else { return Err(unforeseen("wasi:io/streams")) };
    let bytes: Vec<u8> =
        bytes.iter().filter_map(|byte| if let Val::U8(byte) = byte { Some(*byte) } else { None }).collect();
    let level = if stream == Some(STDERR) { Level::Error } else { Level::Info };
    let state = store.data_mut();
    for line in state.log.lines(&String::from_utf8_lossy(&bytes)) {
        state.say(level, line.trim_end(), true);
    }
    Ok(())
}

/// A time as WASI tells it; one before 1970 cannot be told.
fn standing(clock: OffsetDateTime) -> Val {
    datetime(u64::try_from(clock.unix_timestamp()).unwrap_or(0), clock.nanosecond())
}

fn datetime(seconds: u64, nanoseconds: u32) -> Val {
    Val::Record(vec![("seconds".to_owned(), Val::U64(seconds)), ("nanoseconds".to_owned(), Val::U32(nanoseconds))])
}

fn random(world: World, most: u64) -> wasmtime::Result<Vec<u8>> {
    if most > MOST_BYTES {
        let detail = format!("{most} random bytes were asked for at once and {MOST_BYTES} are allowed");
        return Err(HostTrap::Limit { limit: LimitKind::HostCall, detail }.into());
    }
    let mut bytes = vec![0; usize::try_from(most)?];
    match world {
        World::Builder => rand::rngs::SysRng
            .try_fill_bytes(&mut bytes)
            .map_err(|error| HostTrap::Host(format!("the system's source of randomness failed: {error}")))?,
        World::Destination => {}
    }
    Ok(bytes)
}

fn unforeseen(asked: &str) -> wasmtime::Error {
    wasmtime::Error::msg(format!("it called {asked} in a form that WASI {VERSIONS}x does not have"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wasi_is_answered_where_its_functions_are_synchronous_and_its_packages_known() {
        for (import, served) in [
            ("wasi:cli/environment@0.2.9", true),
            ("wasi:sockets/tcp@0.2.0", true),
            ("wasi:http/outgoing-handler@0.2.9", false),
            ("wasi:cli/environment@0.3.0", false),
            ("wasi:cli@0.2.9", false),
            ("waybill:partner/log@0.1.0", false),
        ] {
            assert_eq!(is_served(import), served, "{import}");
        }
    }

    #[test]
    fn a_destinations_randomness_is_none() {
        assert_eq!(random(World::Destination, 4).unwrap(), [0; 4]);
        assert_ne!(random(World::Builder, 32).unwrap(), [0; 32]);
        assert!(random(World::Builder, MOST_BYTES + 1).is_err());
    }
}
