//! The disk as a log of operations leaves it, and what a power loss leaves of
//! it.
//!
//! A write lives in memory until its file is synced; a name lives there until
//! its directory is. Bytes that were not written keep what they were
//! (`SQLITE_IOCAP_POWERSAFE_OVERWRITE`, which SQLite takes for granted).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::log::{File, Op};
use crate::chance::Chance;
use crate::place::DATABASE;

/// What a disk writes at once.
const SECTOR: u64 = 512;

/// What becomes of data that was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Loss {
    /// All of it is lost.
    Lost,
    /// All of it was written anyway.
    Kept,
    /// Each sector of it and each name is kept or lost as this seed has it.
    Torn(u64),
}

/// One file's contents, whatever its name is.
#[derive(Debug, Default)]
struct Content<'a> {
    /// What the running system reads.
    seen: Vec<u8>,
    /// What is on disk for sure.
    durable: Vec<u8>,
    /// What may be on disk, in order.
    pending: Vec<&'a Op>,
    /// The name has never been brought to disk.
    new: bool,
}

/// Which contents a name stands for: in memory, and on disk.
#[derive(Debug, Clone, Copy, Default)]
struct Name {
    seen: Option<usize>,
    durable: Option<usize>,
}

/// The files of one database.
#[derive(Debug)]
pub struct Disk<'a> {
    contents: Vec<Content<'a>>,
    names: BTreeMap<File, Name>,
}

impl Default for Disk<'_> {
    /// A database file, empty and durable.
    fn default() -> Self {
        let main = Name { seen: Some(0), durable: Some(0) };
        Disk { contents: vec![Content::default()], names: BTreeMap::from([(File::Main, main)]) }
    }
}

impl<'a> Disk<'a> {
    /// Does what was done. Answers whether more is durable now than before.
    pub fn apply(&mut self, op: &'a Op) -> bool {
        match op {
            Op::Told(_) => false,
            Op::Create(file) => {
                self.contents.push(Content { new: true, ..Content::default() });
                self.names.entry(*file).or_default().seen = Some(self.contents.len() - 1);
                false
            }
            Op::Delete { file, durable } => {
                self.names.entry(*file).or_default().seen = None;
                if *durable {
                    self.sync_names();
                }
                *durable
            }
            Op::Write { file, .. } | Op::Truncate { file, .. } => {
                if let Some(content) = self.seen(*file) {
                    change(&mut content.seen, op, |_| true);
                    content.pending.push(op);
                }
                false
            }
            Op::Sync(file) => self.sync(*file),
            Op::SyncFailed(file) => {
                if let Some(content) = self.seen(*file) {
                    content.pending.clear();
                }
                false
            }
        }
    }

    /// Whether anything hangs in the balance.
    #[must_use]
    pub fn has_unsynced(&self) -> bool {
        let changed = self.contents.iter().any(|content| !content.pending.is_empty());
        changed || self.names.values().any(|name| name.seen != name.durable)
    }

    /// What the disk holds if the power goes now.
    #[must_use]
    pub fn image(&self, loss: Loss) -> Image<'_> {
        let mut chance = Chance::of(if let Loss::Torn(seed) = loss { seed } else { 0 });
        let mut files = BTreeMap::new();
        for (file, name) in &self.names {
            let content = match loss {
                Loss::Lost => name.durable,
                Loss::Kept => name.seen,
                Loss::Torn(_) if chance.coin() => name.durable,
                Loss::Torn(_) => name.seen,
            };
            let Some(content) = content.map(|at| &self.contents[at]) else { continue };
            let bytes = match loss {
                Loss::Lost => Cow::Borrowed(&content.durable[..]),
                Loss::Kept => Cow::Borrowed(&content.seen[..]),
                Loss::Torn(_) => {
                    let mut bytes = content.durable.clone();
                    for op in &content.pending {
                        change(&mut bytes, op, |_| chance.coin());
                    }
                    Cow::Owned(bytes)
                }
            };
            files.insert(*file, bytes);
        }
        Image { files }
    }

    fn seen(&mut self, file: File) -> Option<&mut Content<'a>> {
        let at = self.names.get(&file)?.seen?;
        self.contents.get_mut(at)
    }

    fn sync(&mut self, file: File) -> bool {
        let Some(content) = self.seen(file) else { return false };
        let changed = !content.pending.is_empty() || content.new;
        for op in content.pending.drain(..) {
            change(&mut content.durable, op, |_| true);
        }
        // SQLite syncs the directory with the first sync of a file it made.
        if std::mem::take(&mut content.new) {
            self.sync_names();
        }
        changed
    }

    fn sync_names(&mut self) {
        for name in self.names.values_mut() {
            name.durable = name.seen;
        }
    }
}

/// Carries a write or truncation out, of a write the sectors that `keep` takes.
fn change(bytes: &mut Vec<u8>, op: &Op, mut keep: impl FnMut(u64) -> bool) {
    match op {
        Op::Write { offset, bytes: new, .. } => {
            let (mut at, end) = (*offset, offset + new.len() as u64);
            while at < end {
                let next = ((at / SECTOR + 1) * SECTOR).min(end);
                if keep(at / SECTOR) {
                    if bytes.len() < next as usize {
                        bytes.resize(next as usize, 0);
                    }
                    let part = &new[(at - offset) as usize..(next - offset) as usize];
                    bytes[at as usize..next as usize].copy_from_slice(part);
                }
                at = next;
            }
        }
        Op::Truncate { size, .. } if keep(0) => bytes.resize(*size as usize, 0),
        _ => {}
    }
}

/// What a power loss left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image<'a> {
    files: BTreeMap<File, Cow<'a, [u8]>>,
}

impl Image<'_> {
    /// Puts the files into a directory, in place of those of an earlier image.
    ///
    /// # Errors
    /// The operating system's.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        remove(&directory.join(format!("{DATABASE}-shm")))?;
        for file in File::ALL {
            let path = directory.join(format!("{DATABASE}{}", file.suffix()));
            match self.files.get(&file) {
                None => remove(&path)?,
                Some(bytes) => OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .mode(0o600)
                    .open(path)?
                    .write_all(bytes)?,
            }
        }
        Ok(())
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(offset: u64, byte: u8, len: usize) -> Op {
        Op::Write { file: File::Main, offset, bytes: vec![byte; len] }
    }

    fn main_of(disk: &Disk<'_>, loss: Loss) -> Vec<u8> {
        disk.image(loss).files[&File::Main].to_vec()
    }

    #[test]
    fn what_is_not_synced_is_lost_kept_or_torn_by_sectors() {
        let ops = [write(0, 1, 2048), Op::Sync(File::Main), write(512, 2, 1536)];
        let mut disk = Disk::default();
        for op in &ops {
            disk.apply(op);
        }
        assert_eq!(main_of(&disk, Loss::Lost), [1; 2048]);
        assert_eq!(main_of(&disk, Loss::Kept), [[1; 512], [2; 512], [2; 512], [2; 512]].concat());
        let torn: std::collections::BTreeSet<_> =
            (0..64).map(|seed| main_of(&disk, Loss::Torn(seed))).collect();
        assert!(torn.len() > 4, "subsets differ by seed");
        for bytes in torn {
            assert!(bytes.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
        }
    }

    #[test]
    fn a_failed_sync_is_not_made_good_by_the_next() {
        let ops = [write(0, 1, 512), Op::SyncFailed(File::Main), Op::Sync(File::Main)];
        let mut disk = Disk::default();
        for op in &ops {
            disk.apply(op);
        }
        assert!(main_of(&disk, Loss::Lost).is_empty());
        assert_eq!(main_of(&disk, Loss::Kept), [1; 512]);
    }

    #[test]
    fn a_new_name_is_durable_with_its_first_sync_and_a_deleted_one_with_its_directory() {
        let wal = |disk: &Disk<'_>, loss| disk.image(loss).files.contains_key(&File::Wal);
        let ops = [
            Op::Create(File::Wal),
            Op::Sync(File::Wal),
            Op::Delete { file: File::Wal, durable: false },
            Op::Delete { file: File::Journal, durable: true },
        ];
        let mut disk = Disk::default();
        let mut found = Vec::new();
        for op in &ops {
            disk.apply(op);
            found.push((wal(&disk, Loss::Lost), wal(&disk, Loss::Kept)));
        }
        assert_eq!(found, [(false, true), (true, true), (true, false), (false, false)]);
    }
}
