//! One channel of the simulated server: each request is remembered, asked about at its hooks, done, and answered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use russh_sftp::extensions::{FsyncExtension, HardlinkExtension, LimitsExtension};
use russh_sftp::protocol::{
    Attrs, Data, ExtendedReply, File as Named, FileAttributes, Handle, Name, OpenFlags, Packet, Status, StatusCode,
    Version,
};

use super::Shared;
use super::answers::{DIRECTORY, Refusal, attributes, file_attributes, ok, refused, status_code};
use super::behaviour::{HardLink, Listing};
use super::files::{Entry, File, No, locked, resolve};
use super::hooks::{Action, Fault, When};
use super::operations::{Answer, Mode, Operation};
use super::ssh::Line;

const MAX_WRITE_BYTES: u64 = 261_120;

pub struct Handler {
    pub(super) shared: Shared,
    line: Line,
    handles: HashMap<String, Open>,
    next_handle: u64,
}

enum Open {
    File { path: String, file: Arc<Mutex<File>>, mode: Mode, read: u64, written: u64 },
    Directory { names: Option<Vec<Named>> },
}

impl Handler {
    pub fn new(shared: Shared, line: Line) -> Self {
        Self { shared, line, handles: HashMap::new(), next_handle: 0 }
    }

    /// Asks the hooks; `Some` is a size to report. Does not return where the client must get no answer.
    pub(super) async fn at(&self, when: When, action: Action, path: &str) -> Result<Option<u64>, Refusal> {
        match self.shared.hooks.ask(when, action, self.line.connection, path) {
            None => Ok(None),
            Some(Fault::ReportSize(bytes)) => Ok(Some(bytes)),
            Some(Fault::Refuse { code, text }) => Err(status_code(code).with_message(text)),
            Some(Fault::Wait(gate)) => {
                gate.pass().await;
                Ok(None)
            }
            Some(Fault::Cut) => {
                self.line.cut();
                self.never().await
            }
            Some(Fault::CutThen(gate)) => {
                self.line.cut();
                gate.pass().await;
                Ok(None)
            }
            Some(Fault::CloseChannel) => {
                self.line.close_channel().await;
                self.never().await
            }
            Some(Fault::Hang) => self.never().await,
        }
    }

    async fn never(&self) -> Result<Option<u64>, Refusal> {
        self.line.silence().await;
        Err(StatusCode::ConnectionLost.into())
    }

    pub(super) fn arrived(&self, operation: Operation) -> usize {
        self.shared.arrived(self.line.connection, operation)
    }

    /// Remembers what is answered, and answers it.
    pub(super) fn answer<T>(&self, index: usize, result: Result<T, Refusal>) -> Result<T, Refusal> {
        let answer = match &result {
            Ok(_) => Answer::Ok,
            Err(refusal) => {
                Answer::Refused(refusal.error_message.clone().unwrap_or_else(|| refusal.status_code.to_string()))
            }
        };
        self.shared.answered(index, answer);
        result
    }

    /// The usual shape of a request: before, the effect, after.
    pub(super) async fn perform(
        &self,
        operation: Operation,
        action: Action,
        path: &str,
        effect: impl FnOnce(&Shared) -> Result<(), Refusal> + Send,
    ) -> Result<(), Refusal> {
        let index = self.arrived(operation);
        let performed = async {
            self.at(When::Before, action, path).await?;
            effect(&self.shared)?;
            self.shared.took_effect(index);
            self.at(When::After, action, path).await.map(drop)
        };
        let result = performed.await;
        self.answer(index, result)
    }

    fn new_handle(&mut self, open: Open) -> String {
        self.next_handle += 1;
        let handle = format!("h{}", self.next_handle);
        self.handles.insert(handle.clone(), open);
        handle
    }

    fn open_file(&self, path: &str, mode: Mode) -> Result<Arc<Mutex<File>>, Refusal> {
        let honours_exclusive = self.shared.behaviour().exclusive_create;
        let mut files = locked(&self.shared.files);
        let file = match files.file(path) {
            Ok(_) if mode.create && mode.exclusive && honours_exclusive => return Err(refused(No::Exists)),
            Ok(file) => {
                if mode.truncate {
                    let modified = files.tick();
                    let mut inside = locked(&file);
                    inside.bytes.clear();
                    inside.modified = modified;
                }
                file
            }
            Err(No::Missing) if mode.create => files.create(path).map_err(refused)?,
            Err(no) => return Err(refused(no)),
        };
        if mode.write {
            locked(&file).writers += 1;
        }
        Ok(file)
    }

    async fn stat_path(&self, path: &str) -> Result<FileAttributes, Refusal> {
        let path = resolve(path);
        let index = self.arrived(Operation::Stat { path: path.clone() });
        let look = async {
            let reported = self.at(When::Before, Action::Stat, &path).await?;
            let mut attributes = self.attributes(&path)?;
            if reported.is_some() {
                attributes.size = reported;
            }
            self.shared.took_effect(index);
            self.at(When::After, Action::Stat, &path).await?;
            Ok(attributes)
        };
        let result = look.await;
        self.answer(index, result)
    }

    fn attributes(&self, path: &str) -> Result<FileAttributes, Refusal> {
        let behaviour = self.shared.behaviour();
        let mut attributes = self.all_attributes(path)?;
        attributes.permissions = attributes.permissions.filter(|_| behaviour.permissions);
        attributes.size = attributes.size.filter(|_| behaviour.sizes);
        // The two times are sent together or not at all.
        attributes.atime = attributes.atime.filter(|_| behaviour.times);
        attributes.mtime = attributes.mtime.filter(|_| behaviour.times);
        Ok(attributes)
    }

    fn all_attributes(&self, path: &str) -> Result<FileAttributes, Refusal> {
        let listing = self.shared.behaviour().listing;
        let entry = locked(&self.shared.files).get(path).map_err(refused)?;
        match (listing, entry) {
            (_, Entry::Directory) => Ok(attributes(0, None, DIRECTORY)),
            (Listing::Forbidden, Entry::File(_)) => Err(StatusCode::PermissionDenied.into()),
            (Listing::Shown | Listing::SizeAfterClose, Entry::File(file)) => Ok(file_attributes(listing, &file)),
        }
    }

    async fn fsync(&self, handle: &str) -> Result<(), Refusal> {
        let Some(Open::File { path, .. }) = self.handles.get(handle) else { return Err(StatusCode::Failure.into()) };
        if !self.shared.behaviour().fsync {
            return Err(StatusCode::OpUnsupported.into());
        }
        self.perform(Operation::Fsync { path: path.clone() }, Action::Fsync, path, |_| Ok(())).await
    }
}

impl russh_sftp::server::Handler for Handler {
    type Error = Refusal;

    fn unimplemented(&self) -> Refusal {
        StatusCode::OpUnsupported.into()
    }

    async fn init(&mut self, _: u32, _: HashMap<String, String>) -> Result<Version, Refusal> {
        let behaviour = self.shared.behaviour();
        let offered = [
            ("hardlink@openssh.com", behaviour.hard_link != HardLink::NotOffered),
            ("posix-rename@openssh.com", behaviour.posix_rename),
            ("fsync@openssh.com", behaviour.fsync),
            ("limits@openssh.com", behaviour.limits),
        ];
        let mut version = Version::new();
        version.extensions.extend(behaviour.extensions);
        for (name, _) in offered.iter().filter(|(_, offered)| *offered) {
            version.extensions.insert((*name).to_owned(), "1".to_owned());
        }
        Ok(version)
    }

    async fn open(
        &mut self,
        id: u32,
        filename: String,
        flags: OpenFlags,
        _: FileAttributes,
    ) -> Result<Handle, Refusal> {
        let path = resolve(&filename);
        let mode = Mode {
            read: flags.contains(OpenFlags::READ),
            write: flags.contains(OpenFlags::WRITE),
            create: flags.contains(OpenFlags::CREATE),
            truncate: flags.contains(OpenFlags::TRUNCATE),
            exclusive: flags.contains(OpenFlags::EXCLUDE),
        };
        let index = self.arrived(Operation::Open { path: path.clone(), mode });
        let opened = async {
            self.at(When::Before, Action::Open, &path).await?;
            let file = self.open_file(&path, mode)?;
            self.shared.took_effect(index);
            self.at(When::After, Action::Open, &path).await?;
            Ok(file)
        };
        let result = opened.await;
        let file = self.answer(index, result)?;
        Ok(Handle { id, handle: self.new_handle(Open::File { path, file, mode, read: 0, written: 0 }) })
    }

    async fn close(&mut self, id: u32, handle: String) -> Result<Status, Refusal> {
        let (path, file, mode, read, written) = match self.handles.remove(&handle) {
            Some(Open::File { path, file, mode, read, written }) => (path, file, mode, read, written),
            Some(Open::Directory { .. }) => return Ok(ok(id)),
            None => return Err(StatusCode::Failure.with_message("no such handle")),
        };
        let operation = Operation::Close { path: path.clone(), read, written };
        self.perform(operation, Action::Close, &path, |shared| {
            if mode.write {
                locked(&file).writers -= 1;
                // A file that is created under its final name is whole when it is closed.
                if mode.create {
                    shared.appeared(&path);
                    shared.collect(&path);
                }
            }
            Ok(())
        })
        .await?;
        Ok(ok(id))
    }

    async fn read(&mut self, id: u32, handle: String, offset: u64, length: u32) -> Result<Data, Refusal> {
        let (path, file) = match self.handles.get(&handle) {
            Some(Open::File { path, file, .. }) => (path.clone(), file.clone()),
            _ => return Err(StatusCode::Failure.with_message("no such handle")),
        };
        self.at(When::Before, Action::Read, &path).await?;
        let data = {
            let inside = locked(&file);
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let wanted = usize::try_from(length.min(self.shared.behaviour().read_bytes)).unwrap_or(usize::MAX);
            let rest = inside.bytes.get(start..).unwrap_or_default();
            rest.get(..wanted.min(rest.len())).unwrap_or_default().to_vec()
        };
        self.at(When::After, Action::Read, &path).await?;
        if let Some(Open::File { read, .. }) = self.handles.get_mut(&handle) {
            *read += data.len() as u64;
        }
        if data.is_empty() { Err(StatusCode::Eof.into()) } else { Ok(Data { id, data }) }
    }

    async fn write(&mut self, id: u32, handle: String, offset: u64, data: Vec<u8>) -> Result<Status, Refusal> {
        let (path, file) = match self.handles.get(&handle) {
            Some(Open::File { path, file, mode, .. }) if mode.write => (path.clone(), file.clone()),
            Some(_) => return Err(StatusCode::PermissionDenied.into()),
            None => return Err(StatusCode::Failure.with_message("no such handle")),
        };
        self.at(When::Before, Action::Write, &path).await?;
        {
            let capacity = self.shared.behaviour().capacity_bytes;
            let mut files = locked(&self.shared.files);
            let used = files.used_bytes();
            let modified = files.tick();
            let mut inside = locked(&file);
            let start = usize::try_from(offset).map_err(|_| refused(No::Full))?;
            let end = start + data.len();
            let grows = end.saturating_sub(inside.bytes.len());
            if capacity.is_some_and(|capacity| used + grows > capacity) {
                return Err(refused(No::Full));
            }
            if grows > 0 {
                inside.bytes.resize(end, 0);
            }
            if let Some(place) = inside.bytes.get_mut(start..end) {
                place.copy_from_slice(&data);
            }
            inside.modified = modified;
        }
        if let Some(Open::File { written, .. }) = self.handles.get_mut(&handle) {
            *written += data.len() as u64;
        }
        self.at(When::After, Action::Write, &path).await?;
        Ok(ok(id))
    }

    async fn stat(&mut self, id: u32, path: String) -> Result<Attrs, Refusal> {
        Ok(Attrs { id, attrs: self.stat_path(&path).await? })
    }

    async fn lstat(&mut self, id: u32, path: String) -> Result<Attrs, Refusal> {
        Ok(Attrs { id, attrs: self.stat_path(&path).await? })
    }

    async fn fstat(&mut self, id: u32, handle: String) -> Result<Attrs, Refusal> {
        match self.handles.get(&handle) {
            Some(Open::File { file, .. }) => {
                Ok(Attrs { id, attrs: file_attributes(self.shared.behaviour().listing, file) })
            }
            _ => Err(StatusCode::Failure.with_message("no such handle")),
        }
    }

    async fn setstat(&mut self, id: u32, path: String, _: FileAttributes) -> Result<Status, Refusal> {
        let path = resolve(&path);
        self.perform(Operation::SetStat { path: path.clone() }, Action::SetStat, &path, |shared| {
            locked(&shared.files).get(&path).map(drop).map_err(refused)
        })
        .await?;
        Ok(ok(id))
    }

    async fn opendir(&mut self, id: u32, path: String) -> Result<Handle, Refusal> {
        let path = resolve(&path);
        let forbidden = self.shared.behaviour().listing == Listing::Forbidden;
        self.perform(Operation::List { path: path.clone() }, Action::List, &path, |shared| {
            match locked(&shared.files).get(&path) {
                Ok(Entry::Directory) if forbidden => Err(StatusCode::PermissionDenied.into()),
                Ok(Entry::Directory) => Ok(()),
                Ok(Entry::File(_)) => Err(StatusCode::Failure.with_message("not a directory")),
                Err(no) => Err(refused(no)),
            }
        })
        .await?;
        let names = locked(&self.shared.files).names_in(&path);
        let named: Result<Vec<Named>, Refusal> = names
            .into_iter()
            .map(|name| self.attributes(&resolve(&format!("{path}/{name}"))).map(|attrs| Named::new(name, attrs)))
            .collect();
        Ok(Handle { id, handle: self.new_handle(Open::Directory { names: Some(named?) }) })
    }

    async fn readdir(&mut self, id: u32, handle: String) -> Result<Name, Refusal> {
        match self.handles.get_mut(&handle) {
            Some(Open::Directory { names }) => {
                names.take().map(|files| Name { id, files }).ok_or_else(|| StatusCode::Eof.into())
            }
            _ => Err(StatusCode::Failure.with_message("no such handle")),
        }
    }

    async fn remove(&mut self, id: u32, filename: String) -> Result<Status, Refusal> {
        let path = resolve(&filename);
        self.perform(Operation::Remove { path: path.clone() }, Action::Remove, &path, |shared| {
            locked(&shared.files).remove(&path).map_err(refused)
        })
        .await?;
        Ok(ok(id))
    }

    async fn mkdir(&mut self, id: u32, path: String, _: FileAttributes) -> Result<Status, Refusal> {
        let path = resolve(&path);
        self.perform(Operation::MakeDirectory { path: path.clone() }, Action::MakeDirectory, &path, |shared| {
            locked(&shared.files).make_directory(&path).map_err(refused)
        })
        .await?;
        Ok(ok(id))
    }

    async fn rmdir(&mut self, id: u32, path: String) -> Result<Status, Refusal> {
        let path = resolve(&path);
        self.perform(Operation::Remove { path: path.clone() }, Action::Remove, &path, |shared| {
            locked(&shared.files).remove_directory(&path).map_err(refused)
        })
        .await?;
        Ok(ok(id))
    }

    async fn realpath(&mut self, id: u32, path: String) -> Result<Name, Refusal> {
        let path = resolve(&path);
        self.at(When::Before, Action::RealPath, &path).await?;
        Ok(Name { id, files: vec![Named::dummy(path)] })
    }

    async fn rename(&mut self, id: u32, from: String, to: String) -> Result<Status, Refusal> {
        self.rename_file(&from, &to).await?;
        Ok(ok(id))
    }

    async fn extended(&mut self, id: u32, request: String, data: Vec<u8>) -> Result<Packet, Refusal> {
        let mut data = bytes::Bytes::from(data);
        let bad = |_| Refusal::from(StatusCode::BadMessage);
        match request.as_str() {
            "limits@openssh.com" if self.shared.behaviour().limits => {
                let limits = LimitsExtension {
                    max_packet_len: 262_144,
                    max_read_len: self.shared.behaviour().read_bytes.into(),
                    max_write_len: MAX_WRITE_BYTES,
                    max_open_handles: 100,
                };
                let data = russh_sftp::ser::to_bytes(&limits).map_err(bad)?.to_vec();
                return Ok(ExtendedReply { id, data }.into());
            }
            "posix-rename@openssh.com" => {
                let names: HardlinkExtension = russh_sftp::de::from_bytes(&mut data).map_err(bad)?;
                self.posix_rename(&names.oldpath, &names.newpath).await?;
            }
            "hardlink@openssh.com" => {
                let names: HardlinkExtension = russh_sftp::de::from_bytes(&mut data).map_err(bad)?;
                self.hard_link(&names.oldpath, &names.newpath).await?;
            }
            "fsync@openssh.com" => {
                let asked: FsyncExtension = russh_sftp::de::from_bytes(&mut data).map_err(bad)?;
                self.fsync(&asked.handle).await?;
            }
            _ => return Err(StatusCode::OpUnsupported.into()),
        }
        Ok(ok(id).into())
    }
}
