//! The in-memory file system: names that point at files, so that hard links and unlinked open files are real.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A file apart from its names.
#[derive(Debug, Default)]
pub struct File {
    pub bytes: Vec<u8>,
    /// The partner's clock: seconds that only ever grow, one a change, and have nothing to do with the host's.
    pub modified: u32,
    /// How many handles have it open for writing.
    pub writers: u32,
}

#[derive(Debug, Clone)]
pub enum Entry {
    Directory,
    File(Arc<Mutex<File>>),
}

/// Why the file system said no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum No {
    Missing,
    Exists,
    IsDirectory,
    NotEmpty,
    Full,
}

#[derive(Debug)]
pub struct Files {
    entries: BTreeMap<String, Entry>,
    clock: u32,
}

const CLOCK_STARTS: u32 = 1_700_000_000;

impl Default for Files {
    fn default() -> Self {
        Self { entries: BTreeMap::from([("/".to_owned(), Entry::Directory)]), clock: CLOCK_STARTS }
    }
}

impl Files {
    pub fn get(&self, path: &str) -> Result<Entry, No> {
        self.entries.get(path).cloned().ok_or(No::Missing)
    }

    pub fn file(&self, path: &str) -> Result<Arc<Mutex<File>>, No> {
        match self.get(path)? {
            Entry::File(file) => Ok(file),
            Entry::Directory => Err(No::IsDirectory),
        }
    }

    pub fn tick(&mut self) -> u32 {
        self.clock += 1;
        self.clock
    }

    pub fn create(&mut self, path: &str) -> Result<Arc<Mutex<File>>, No> {
        self.parent_exists(path)?;
        let file = Arc::new(Mutex::new(File { modified: self.tick(), ..File::default() }));
        self.entries.insert(path.to_owned(), Entry::File(file.clone()));
        Ok(file)
    }

    pub fn make_directory(&mut self, path: &str) -> Result<(), No> {
        self.parent_exists(path)?;
        if self.entries.contains_key(path) {
            return Err(No::Exists);
        }
        self.entries.insert(path.to_owned(), Entry::Directory);
        Ok(())
    }

    pub fn remove(&mut self, path: &str) -> Result<(), No> {
        self.file(path)?;
        self.entries.remove(path);
        Ok(())
    }

    pub fn remove_directory(&mut self, path: &str) -> Result<(), No> {
        if !self.names_in(path).is_empty() {
            return Err(No::NotEmpty);
        }
        self.entries.remove(path).map(drop).ok_or(No::Missing)
    }

    pub fn link(&mut self, from: &str, to: &str) -> Result<(), No> {
        let file = self.file(from)?;
        self.parent_exists(to)?;
        if self.entries.contains_key(to) {
            return Err(No::Exists);
        }
        self.entries.insert(to.to_owned(), Entry::File(file));
        Ok(())
    }

    /// One step; replaces what stands under the new name.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<(), No> {
        let entry = self.get(from)?;
        self.parent_exists(to)?;
        self.entries.remove(from);
        self.entries.insert(to.to_owned(), entry);
        Ok(())
    }

    /// The names right below a directory, without their path.
    pub fn names_in(&self, directory: &str) -> Vec<String> {
        let prefix = if directory == "/" { "/".to_owned() } else { format!("{directory}/") };
        self.entries
            .keys()
            .filter_map(|path| path.strip_prefix(&prefix))
            .filter(|rest| !rest.is_empty() && !rest.contains('/'))
            .map(str::to_owned)
            .collect()
    }

    /// What all files take, open and unlinked ones excepted.
    pub fn used_bytes(&self) -> usize {
        let mut seen: Vec<*const Mutex<File>> = Vec::new();
        let mut sum = 0;
        for entry in self.entries.values() {
            if let Entry::File(file) = entry
                && !seen.contains(&Arc::as_ptr(file))
            {
                seen.push(Arc::as_ptr(file));
                sum += locked(file).bytes.len();
            }
        }
        sum
    }

    fn parent_exists(&self, path: &str) -> Result<(), No> {
        let parent = path.rsplit_once('/').map_or("/", |(parent, _)| if parent.is_empty() { "/" } else { parent });
        match self.get(parent)? {
            Entry::Directory => Ok(()),
            Entry::File(_) => Err(No::Missing),
        }
    }
}

/// A panic in one test's hook must not hide what the log says.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Every path is absolute inside; a session starts in `/`. `.` and `..` are resolved as a real server does.
pub fn resolve(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/"))
}
