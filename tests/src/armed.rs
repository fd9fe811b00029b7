//! The point at which a process of a test is killed.

use onceseal_store::fault::{Action, arm};

use crate::vfs::{self, Call, Fault, Plan, Recorder};

/// Arms the point that the environment names, `ONCESEAL_CRASH=<point>:<n>`: one of
/// the store's or of the program's, or the n-th call to a file.
///
/// # Panics
/// If the environment says something else.
#[must_use]
pub fn armed() -> Option<Recorder> {
    let plan = std::env::var("ONCESEAL_CRASH").ok()?;
    let (point, nth) = plan.split_once(':').expect("point:n");
    let nth = nth.parse().expect("a number");
    let (call, file) = match point {
        "log_write" => (Call::Write, vfs::File::Wal),
        "log_sync" => (Call::Sync, vfs::File::Wal),
        "checkpoint_write" => (Call::Write, vfs::File::Main),
        "checkpoint_sync" => (Call::Sync, vfs::File::Main),
        point => {
            arm(point, nth, Action::Kill);
            return None;
        }
    };
    let recorder = Recorder::register("killing");
    recorder.arm(Plan::once(call, Fault::Kill, nth).of(file));
    Some(recorder)
}
