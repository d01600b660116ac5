//! The one WebAssembly engine of a process, and what a call may consume.
//!
//! Computing time is bounded by epochs: a thread advances the epoch every 10 ms, a guest yields at each step, and the
//! call's timeout then drops it. Memory, tables and handles are bounded for the whole store, not for each memory.
//! Nothing here knows what a plugin does.

use std::time::Duration;

use wasmtime::{Config, Engine, ResourceLimiter, Store};

use super::call::{HostTrap, LimitKind};
use super::error::PluginError;
use super::measure::Usage;
use super::worlds::State;

/// How long a guest computes at most before it yields to the runtime.
const TICK: Duration = Duration::from_millis(10);
/// Bytes that one host call or one returned value may carry out of a guest; wasmtime's default is 128 MiB.
/// The largest honest use is one chunk of output; the SDK writes 64 KiB.
const BYTES_A_HOST_CALL: usize = 4 << 20;
/// Live component-model handles in one call; wasmtime's default is 100,000. An honest guest holds a handful.
const HANDLES: usize = 256;
/// Elements of all tables of one call. JavaScript's engine, the largest seen, starts with 7,690.
const TABLE_ELEMENTS: usize = 100_000;
/// Core instances, memories and tables in one call. The adapters around a JavaScript or Python guest need about ten.
const INSTANCES: usize = 64;

/// What guests may be made of.
pub(super) fn config() -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true);
    config.concurrency_support(false);
    // No guest seen needs any of these, and each one is surface.
    config.wasm_memory64(false);
    config.wasm_relaxed_simd(false);
    config.wasm_tail_call(false);
    config.wasm_multi_memory(false);
    config
}

/// Sets the engine up and starts its ticker, which ends with the engine.
pub(super) fn start() -> Result<Engine, PluginError> {
    let engine = Engine::new(&config()).map_err(PluginError::Engine)?;
    let weak = engine.weak();
    std::thread::Builder::new()
        .name("plugin-epoch".to_owned())
        .spawn(move || {
            loop {
                std::thread::sleep(TICK);
                match weak.upgrade() {
                    Some(engine) => engine.increment_epoch(),
                    None => break,
                }
            }
        })
        .map_err(PluginError::Ticker)?;
    Ok(engine)
}

/// A store for one call. The epoch's deadline is set before instantiation, because a start function runs then.
pub(super) fn store(engine: &Engine, state: State) -> Store<State> {
    let mut store = Store::new(engine, state);
    store.limiter(|state| &mut state.consumption);
    store.set_hostcall_fuel(BYTES_A_HOST_CALL);
    store.set_max_component_handles(HANDLES);
    store.set_epoch_deadline(1);
    store.epoch_deadline_async_yield_and_update(1);
    store
}

/// What one call's store has taken so far, and may take.
#[derive(Debug)]
pub(super) struct Consumption {
    memory_bytes: usize,
    memory_limit_bytes: usize,
    table_elements: usize,
    usage: Usage,
}

impl Consumption {
    pub(super) fn new(memory_limit_bytes: usize, usage: Usage) -> Self {
        Self { memory_bytes: 0, memory_limit_bytes, table_elements: 0, usage }
    }
}

/// Growth past the limit is a trap, not a `-1`: an author otherwise sees only that the allocator gave up.
impl ResourceLimiter for Consumption {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.memory_bytes.saturating_add(desired.saturating_sub(current));
        if total > self.memory_limit_bytes {
            return Err(HostTrap::Limit {
                limit: LimitKind::Memory,
                detail: format!(
                    "{} MiB were asked for, and memory_mib = {} in the [limits] of partner.toml",
                    total.div_ceil(1 << 20),
                    self.memory_limit_bytes >> 20
                ),
            }
            .into());
        }
        self.memory_bytes = total;
        self.usage.memory(total);
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let total = self.table_elements.saturating_add(desired.saturating_sub(current));
        if total > TABLE_ELEMENTS {
            return Err(HostTrap::Limit {
                limit: LimitKind::Memory,
                detail: format!("tables of {total} elements were asked for and {TABLE_ELEMENTS} are allowed"),
            }
            .into());
        }
        self.table_elements = total;
        Ok(true)
    }

    fn instances(&self) -> usize {
        INSTANCES
    }

    fn tables(&self) -> usize {
        INSTANCES
    }

    fn memories(&self) -> usize {
        INSTANCES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_over_all_memories_of_a_store() {
        let mut consumption = Consumption::new(100, Usage::default());
        assert!(consumption.memory_growing(0, 60, None).unwrap());
        let error = consumption.memory_growing(0, 60, None).unwrap_err();
        assert!(error.to_string().contains("1 MiB were asked for, and memory_mib = 0"), "{error}");
        assert!(consumption.memory_growing(60, 100, None).unwrap(), "a refused growth takes nothing");
    }

    #[test]
    fn the_ticker_advances_the_epoch_and_ends_with_the_engine() {
        let engine = start().unwrap();
        let weak = engine.weak();
        drop(engine);
        // The ticker holds the engine only while it increments.
        while weak.upgrade().is_some() {
            std::thread::yield_now();
        }
    }
}
