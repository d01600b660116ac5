//! `remote`: the partner's endpoint. The gate, the limits and the journal are `remote`'s own; this only hands calls on.
//!
//! Each operation runs there in a task of its own: a call that is dropped here stops waiting, and nothing else.

use wasmtime::component::Resource;

use super::State;
use super::convert::{entry, failure, found};
use crate::plugin::bindings::remote::{Entry, Found, Host, HostReader, HostWriter, Sent};
use crate::plugin::bindings::types::Failure;
use crate::remote::{Reader, Writer};

impl Host for State {}

impl HostReader for State {
    async fn stat(&mut self, look: Resource<Reader>, name: String) -> wasmtime::Result<Result<Found, Failure>> {
        let answer = self.table.get(&look)?.stat(&name).await;
        self.usage.asked("stat", &name, &answer);
        Ok(answer.map(found).map_err(failure))
    }

    async fn entries(
        &mut self,
        look: Resource<Reader>,
        directory: String,
        prefix: String,
        most: u32,
    ) -> wasmtime::Result<Result<Vec<Entry>, Failure>> {
        let answer = self.table.get(&look)?.entries(&directory, &prefix, most).await;
        self.usage.asked("entries", &directory, &answer);
        Ok(answer.map(|entries| entries.into_iter().map(entry).collect()).map_err(failure))
    }

    async fn read(
        &mut self,
        look: Resource<Reader>,
        name: String,
        offset: u64,
        most: u32,
    ) -> wasmtime::Result<Result<Vec<u8>, Failure>> {
        let answer = self.table.get(&look)?.read(&name, offset, most).await;
        self.usage.asked("read", &name, &answer);
        Ok(answer.map_err(failure))
    }

    async fn digest(
        &mut self,
        look: Resource<Reader>,
        name: String,
        algorithm: String,
    ) -> wasmtime::Result<Result<Option<Vec<u8>>, Failure>> {
        let answer = self.table.get(&look)?.digest(&name, &algorithm);
        self.usage.asked("digest", &name, &answer);
        Ok(answer.map_err(failure))
    }

    async fn drop(&mut self, look: Resource<Reader>) -> wasmtime::Result<()> {
        self.table.delete(look)?;
        Ok(())
    }
}

impl HostWriter for State {
    async fn make_directory(&mut self, send: Resource<Writer>, name: String) -> wasmtime::Result<Result<(), Failure>> {
        let answer = self.table.get(&send)?.make_directory(&name).await;
        self.usage.asked("make-directory", &name, &answer);
        Ok(answer.map_err(failure))
    }

    async fn send(&mut self, send: Resource<Writer>) -> wasmtime::Result<Result<Sent, Failure>> {
        let answer = self.table.get(&send)?.send().await;
        self.usage.asked("send", "", &answer);
        let sent = answer.map(|sent| Sent { temporary: sent.temporary, bytes: sent.bytes });
        Ok(sent.map_err(failure))
    }

    async fn publish(&mut self, send: Resource<Writer>) -> wasmtime::Result<Result<(), Failure>> {
        let answer = self.table.get(&send)?.publish().await;
        self.usage.asked("publish", "", &answer);
        Ok(answer.map_err(failure))
    }

    async fn publish_over(&mut self, send: Resource<Writer>) -> wasmtime::Result<Result<(), Failure>> {
        let answer = self.table.get(&send)?.publish_over().await;
        self.usage.asked("publish-over", "", &answer);
        Ok(answer.map_err(failure))
    }

    async fn put(
        &mut self,
        send: Resource<Writer>,
        name: String,
        bytes: Vec<u8>,
    ) -> wasmtime::Result<Result<(), Failure>> {
        let answer = self.table.get(&send)?.put(&name, bytes).await;
        self.usage.asked("put", &name, &answer);
        Ok(answer.map_err(failure))
    }

    async fn drop(&mut self, send: Resource<Writer>) -> wasmtime::Result<()> {
        self.table.delete(send)?;
        Ok(())
    }
}
