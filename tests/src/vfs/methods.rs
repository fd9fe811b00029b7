//! The callbacks: each notes what it does and has the `unix` file system do it.
//!
//! A file of ours is [`Ours`] with the base file right behind it, in the one
//! piece of memory that SQLite gives for both (sqlite3_vfs.szOsFile).

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use rusqlite::ffi::{self, sqlite3_file, sqlite3_io_methods, sqlite3_vfs};

use super::log::{File, Op};
use super::{Call, Fault, Shared};

/// The head of an open file. `repr(C)`: SQLite reads its first member.
#[repr(C)]
struct Ours {
    methods: *const sqlite3_io_methods,
    shared: &'static Shared,
    file: Option<File>,
}

/// A file system of ours. `name` lives as long as it.
pub(super) fn file_system(shared: &'static Shared, name: *const c_char) -> sqlite3_vfs {
    // SAFETY: `base` is the unix file system, readable for ever; a copy of it
    // is a valid file system whose methods ignore which one they are called on,
    // but for those replaced here.
    let base = unsafe { ptr::read(shared.base) };
    sqlite3_vfs {
        szOsFile: size_of::<Ours>() as c_int + base.szOsFile,
        pNext: ptr::null_mut(),
        zName: name,
        pAppData: ptr::from_ref(shared).cast_mut().cast(),
        xOpen: Some(open),
        xDelete: Some(delete),
        ..base
    }
}

/// Version 2: no memory map, so that every byte comes through here.
static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// SAFETY: of a file system made by [`file_system`].
unsafe fn shared_of(vfs: *mut sqlite3_vfs) -> &'static Shared {
    // SAFETY: pAppData was made from a `&'static Shared`.
    unsafe { &*(*vfs).pAppData.cast::<Shared>() }
}

/// SAFETY: of a file that [`open`] has opened.
unsafe fn head(file: *mut sqlite3_file) -> (&'static Shared, Option<File>) {
    let ours = file.cast::<Ours>();
    // SAFETY: `open` wrote the head before it answered OK.
    unsafe { ((*ours).shared, (*ours).file) }
}

/// The base's file behind ours. SAFETY: of memory of szOsFile bytes.
unsafe fn behind(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: szOsFile has room for both; `Ours` ends aligned to 8, as the
    // base's file needs.
    unsafe { file.cast::<Ours>().add(1).cast() }
}

/// Has the base do it.
macro_rules! base {
    ($file:expr, $method:ident $(, $argument:expr)*) => {{
        let file = behind($file);
        match (*(*file).pMethods).$method {
            Some(method) => method(file $(, $argument)*),
            None => unreachable!("the unix file system has all methods of version 2"),
        }
    }};
}

/// Callbacks that only pass on.
macro_rules! pass {
    ($($name:ident = $method:ident ( $($argument:ident : $kind:ty),* ) -> $answer:ty;)*) => {$(
        unsafe extern "C" fn $name(file: *mut sqlite3_file $(, $argument: $kind)*) -> $answer {
            // SAFETY: SQLite calls it on an open file, with arguments as the
            // base's method takes them.
            unsafe { base!(file, $method $(, $argument)*) }
        }
    )*};
}

pass! {
    close = xClose() -> c_int;
    file_size = xFileSize(size: *mut i64) -> c_int;
    lock = xLock(level: c_int) -> c_int;
    unlock = xUnlock(level: c_int) -> c_int;
    check_reserved_lock = xCheckReservedLock(found: *mut c_int) -> c_int;
    file_control = xFileControl(op: c_int, argument: *mut c_void) -> c_int;
    sector_size = xSectorSize() -> c_int;
    device_characteristics = xDeviceCharacteristics() -> c_int;
    shm_map = xShmMap(page: c_int, size: c_int, extend: c_int, at: *mut *mut c_void) -> c_int;
    shm_lock = xShmLock(offset: c_int, n: c_int, flags: c_int) -> c_int;
    shm_barrier = xShmBarrier() -> ();
    shm_unmap = xShmUnmap(delete: c_int) -> c_int;
}

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let role = File::of_flags(flags);
    // SAFETY: SQLite gives memory of szOsFile bytes, and a name that the base
    // may keep until the file is closed. A file without methods is not closed.
    unsafe {
        let shared = shared_of(vfs);
        (*file).pMethods = ptr::null();
        let may_make = role.is_some() && flags & ffi::SQLITE_OPEN_CREATE != 0;
        let makes = may_make && !exists(shared, name);
        let Some(base_open) = (*shared.base).xOpen else { return ffi::SQLITE_ERROR };
        let answer = base_open(shared.base, name, behind(file), flags, out);
        if answer == ffi::SQLITE_OK {
            file.cast::<Ours>().write(Ours { methods: &METHODS, shared, file: role });
            if let (Some(role), true) = (role, makes) {
                shared.record(Op::Create(role));
            }
        }
        answer
    }
}

/// SAFETY: `name` is a C string.
unsafe fn exists(shared: &Shared, name: *const c_char) -> bool {
    let mut found = 0;
    // SAFETY: the base's own method, on itself.
    let answer = unsafe {
        (*shared.base).xAccess.map(|access| access(shared.base, name, ffi::SQLITE_ACCESS_EXISTS, &mut found))
    };
    answer == Some(ffi::SQLITE_OK) && found != 0
}

unsafe extern "C" fn delete(vfs: *mut sqlite3_vfs, name: *const c_char, sync_directory: c_int) -> c_int {
    // SAFETY: SQLite gives a C string; the base's own method, on itself.
    unsafe {
        let shared = shared_of(vfs);
        let Some(base_delete) = (*shared.base).xDelete else { return ffi::SQLITE_ERROR };
        let answer = base_delete(shared.base, name, sync_directory);
        if let (Some(file), ffi::SQLITE_OK) = (File::of_name(CStr::from_ptr(name).to_bytes()), answer) {
            shared.record(Op::Delete { file, durable: sync_directory != 0 });
        }
        answer
    }
}

unsafe extern "C" fn read(file: *mut sqlite3_file, into: *mut c_void, amount: c_int, offset: i64) -> c_int {
    // SAFETY: SQLite calls it on an open file, with room for `amount` bytes.
    unsafe {
        let (shared, role) = head(file);
        let fault = role.and_then(|role| shared.meet(Call::Read, role));
        let answer = base!(file, xRead, into, amount, offset);
        match fault {
            None => answer,
            Some(fault) => {
                let half = amount.unsigned_abs() as usize / 2;
                ptr::write_bytes(into.cast::<u8>().add(half), 0, amount.unsigned_abs() as usize - half);
                end_if(fault);
                fault.answer(Call::Read)
            }
        }
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    from: *const c_void,
    amount: c_int,
    offset: i64,
) -> c_int {
    // SAFETY: SQLite calls it on an open file, with `amount` bytes to be read.
    unsafe {
        let (shared, role) = head(file);
        let Some(role) = role else { return base!(file, xWrite, from, amount, offset) };
        let fault = shared.meet(Call::Write, role);
        let amount = if fault.is_some() { amount / 2 } else { amount };
        let answer = base!(file, xWrite, from, amount, offset);
        if answer == ffi::SQLITE_OK {
            let bytes =
                std::slice::from_raw_parts(from.cast::<u8>(), amount.unsigned_abs() as usize).to_vec();
            shared.record(Op::Write { file: role, offset: offset.unsigned_abs(), bytes });
        }
        match fault {
            None => answer,
            Some(fault) => {
                end_if(fault);
                fault.answer(Call::Write)
            }
        }
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: i64) -> c_int {
    // SAFETY: SQLite calls it on an open file.
    unsafe {
        let answer = base!(file, xTruncate, size);
        if let ((shared, Some(role)), ffi::SQLITE_OK) = (head(file), answer) {
            shared.record(Op::Truncate { file: role, size: size.unsigned_abs() });
        }
        answer
    }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: SQLite calls it on an open file.
    unsafe {
        let (shared, role) = head(file);
        let Some(role) = role else { return base!(file, xSync, flags) };
        let Some(fault) = shared.meet(Call::Sync, role) else {
            let answer = base!(file, xSync, flags);
            shared.record(if answer == ffi::SQLITE_OK { Op::Sync(role) } else { Op::SyncFailed(role) });
            return answer;
        };
        end_if(fault);
        if fault != Fault::Lie {
            shared.record(Op::SyncFailed(role));
        }
        fault.answer(Call::Sync)
    }
}

/// Ends the process if that is the fault.
fn end_if(fault: Fault) {
    if fault == Fault::Kill {
        // Nothing comes after it: a signal to oneself that is not blocked is
        // delivered before kill(2) returns.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}
