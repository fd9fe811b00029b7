//! The server that a store is on. What is too much of something is the store's to
//! say; here is how it is told.

use onceseal::Opening;
use onceseal::config::StoreAddress;
use onceseal::core::code::Code;
use onceseal::core::json::escape_for_display;
use onceseal::store::{Connections, Failover, LockRoom, SchemaState, ServerState, Skew, Standby};

use super::checks::failed;
use super::{Check, Verdict};
use crate::text::counted;

/// Looks at the server; `false` where it does not answer, and nothing else would.
pub(super) fn look(opening: &Opening, address: &StoreAddress, checks: &mut Vec<Check>) -> bool {
    match opening.server() {
        Ok(Some(state)) => {
            checks.extend(told(&state, address, opening.settings.asynchronous_standby));
            true
        }
        Ok(None) => true,
        Err(error) => {
            let check = failed("server", &error);
            checks.push(Check { detail: format!("{}; {}", address.shown(), check.detail), ..check });
            ![Code::StoreUnreachable, Code::StoreRefused].iter().any(|code| error.code() == code.as_str())
        }
    }
}

fn told(state: &ServerState, address: &StoreAddress, accepted: bool) -> Vec<Check> {
    let mut checks = vec![server(state, address), settings(state), schema(&state.schema)];
    checks.extend([failover(state, accepted), clock(state.skew)]);
    checks.extend(state.listening.as_ref().map(listening));
    checks.extend(state.standbys.as_deref().filter(|all| !all.is_empty()).map(replication));
    checks.push(unsequenced(state.unsequenced, state.stuck));
    checks.push(state.locks.map_or_else(|| hidden("locks"), locks));
    checks.push(state.connections.map_or_else(|| hidden("connections"), connections));
    checks
}

/// What the role may not see is no fault.
fn hidden(name: &'static str) -> Check {
    Check::new(name, Verdict::Ok, "unknown: the role may not see it").next(SHOWN)
}

/// What lets a role see more.
const SHOWN: &str = "GRANT pg_monitor TO the role, which lets it see more";

fn server(state: &ServerState, address: &StoreAddress) -> Check {
    let (major, minor) = state.server.version;
    let (verdict, how) = match (state.is_encrypted, state.is_here) {
        (true, _) => (Verdict::Ok, "encrypted"),
        (false, true) => (Verdict::Ok, "on this machine, not encrypted"),
        (false, false) => (Verdict::Warn, "not encrypted"),
    };
    let detail = format!("{}, PostgreSQL {major}.{minor}, {how}", address.shown());
    let check = Check::new("server", verdict, detail);
    if verdict == Verdict::Ok { check } else { check.next("sslmode=verify-full in the address") }
}

fn settings(state: &ServerState) -> Check {
    let faults = state.server.faults();
    if faults.is_empty() {
        return Check::new(
            "settings",
            Verdict::Ok,
            "fsync and full_page_writes are on, the encoding is UTF8",
        );
    }
    Check::new("settings", Verdict::Fail, faults.join("; "))
        .next("correct it on the server; fsync and full_page_writes stand in postgresql.conf")
}

fn schema(schema: &SchemaState) -> Check {
    let check = |verdict, what: String| Check::new("schema", verdict, what);
    match schema {
        SchemaState::Absent { may_make: true } => {
            check(Verdict::Ok, "nothing is there yet; who acts first makes it".to_owned())
        }
        SchemaState::Absent { may_make: false } => {
            check(Verdict::Fail, "nothing is there yet, and the role may not make it".to_owned())
                .next("GRANT CREATE ON DATABASE to the role, or let its owner run `onceseal migrate`")
        }
        SchemaState::Ours { version, newest, .. } if version < newest => {
            check(Verdict::Fail, format!("it is at version {version}, and this program's at {newest}"))
                .next("update the programs on all hosts, then onceseal migrate")
        }
        SchemaState::Ours { version, lacks, .. } if lacks.is_empty() => {
            check(Verdict::Ok, format!("it is at version {version}, as this program's"))
        }
        SchemaState::Ours { version, lacks, .. } => {
            let may_not = "and the role may not do all that a command does";
            check(Verdict::Fail, format!("it is at version {version}, as this program's, {may_not}"))
                .next(granted(lacks))
        }
        SchemaState::Closed { lacks } => {
            check(Verdict::Fail, "the role may not look into it".to_owned()).next(granted(lacks))
        }
        SchemaState::Foreign(what) => check(Verdict::Fail, what.clone()).next(
            "use the program that made it, or a newer one; where it is the wrong one, correct the address",
        ),
    }
}

/// What its owner has to run.
fn granted(lacks: &[String]) -> String {
    format!("let the owner of the schema run: {}", lacks.join("; "))
}

fn listening(listening: &Result<(), String>) -> Check {
    match listening {
        Ok(()) => Check::new("listening", Verdict::Ok, "commits of other hosts are heard of at once"),
        Err(why) => Check::new(
            "listening",
            Verdict::Warn,
            format!(
                "nobody is heard where `listen` says, so commits of other hosts are only looked for: {why}"
            ),
        )
        .next("correct `listen` in the address, or leave it out"),
    }
}

fn failover(state: &ServerState, accepted: bool) -> Check {
    let hosts = format!("{} in the address", counted(state.hosts, "host"));
    let follow = counted(state.server.standbys.len(), "standby");
    let unwaited: Vec<_> = state.server.unwaited().into_iter().map(escape_for_display).collect();
    let names = escape_for_display(&state.server.synchronous);
    let check = |verdict, what: String| Check::new("failover", verdict, format!("{what}; {hosts}"));
    let may_lack = format!(
        "commits do not wait for each of {}, which may take over without what was acknowledged",
        unwaited.join(", ")
    );
    if state.server.waits_in_vain() {
        return check(Verdict::Fail, format!("commits wait for {names}, and not enough of them follow"))
            .next("start the standby, or take it out of synchronous_standby_names");
    }
    match (state.server.failover(), accepted) {
        (Failover::None, _) => check(Verdict::Ok, "no standby follows".to_owned()),
        (Failover::Synchronous, _) => {
            check(Verdict::Ok, format!("commits wait for {names}; {follow} connected"))
        }
        (Failover::Asynchronous, true) => {
            check(Verdict::Warn, format!("{may_lack}, which the settings accept"))
                .next("set synchronous_standby_names on the server")
        }
        (Failover::Asynchronous, false) => {
            check(Verdict::Fail, format!("{may_lack}; who opens the store to act is refused")).next(
                "set synchronous_standby_names on the server, or accept it by `asynchronous_standby: true`",
            )
        }
    }
}

fn clock(skew: Skew) -> Check {
    let seconds = |us: i64| us.unsigned_abs() as f64 / 1e6;
    let Skew { ahead_us, error_us } = skew;
    let side = if ahead_us < 0 { "behind" } else { "ahead of" };
    let detail = format!(
        "the server's is {:.3} s {side} this host's, within {:.3} s; the server's decides",
        seconds(ahead_us),
        seconds(error_us)
    );
    match skew.is_wide() {
        false => Check::new("clock", Verdict::Ok, detail),
        true => Check::new("clock", Verdict::Warn, detail)
            .next("set the clock that is wrong, and have NTP keep it"),
    }
}

fn replication(standbys: &[Standby]) -> Check {
    let each = standbys.iter().map(|standby| {
        let name = escape_for_display(&standby.name);
        match (standby.bytes, standby.lag_us) {
            (None, _) => format!("{name}: unknown"),
            (Some(bytes), None) => format!("{name}: {bytes} bytes behind"),
            (Some(bytes), Some(lag)) => format!("{name}: {bytes} bytes, {:.3} s behind", lag as f64 / 1e6),
        }
    });
    let detail = each.collect::<Vec<_>>().join("; ");
    if standbys.iter().any(|standby| standby.is_behind() == Some(true)) {
        return Check::new("replication", Verdict::Warn, detail).next(
            "look at the standby and the network to it; what it lacks is lost where it takes over now",
        );
    }
    let check = Check::new("replication", Verdict::Ok, detail);
    if standbys.iter().any(|standby| standby.is_behind().is_none()) { check.next(SHOWN) } else { check }
}

fn unsequenced(left: Option<i64>, stuck: Option<i64>) -> Check {
    if let Some(stuck) = stuck.filter(|stuck| *stuck > 0) {
        let stuck = counted(usize::try_from(stuck).unwrap_or(usize::MAX), "event");
        let detail = format!("waiting for a place in the log and in it already: {stuck}; commands fail");
        return Check::new("unsequenced", Verdict::Fail, detail).next("onceseal audit, which names the row");
    }
    let n = left.and_then(|left| usize::try_from(left).ok()).unwrap_or(0);
    let detail = match n {
        0 => "every commit has its place in the log".to_owned(),
        n => format!("not in the log yet: {}; whoever looks next gives it one", counted(n, "commit")),
    };
    match left.is_some_and(|left| left > ServerState::UNSEQUENCED) {
        false => Check::new("unsequenced", Verdict::Ok, detail),
        true => Check::new("unsequenced", Verdict::Warn, detail).next(
            "let a role that owns the schema look at the store; pg_locks names who keeps it from doing so",
        ),
    }
}

fn locks(locks: LockRoom) -> Check {
    let LockRoom { held, room, waiting, longest_us } = locks;
    let waits = match (waiting, longest_us) {
        (0, _) => "no transaction of this store waits for one".to_owned(),
        (n, Some(us)) => format!("waiting for one: {n}, the longest for {:.3} s", us as f64 / 1e6),
        (n, None) => format!("waiting for one: {n}, for how long is unknown"),
    };
    let detail = format!("{held} advisory locks held, with room for {room}; {waits}");
    match (locks.is_short(), locks.is_stuck()) {
        (true, _) => {
            Check::new("locks", Verdict::Warn, detail).next("raise max_locks_per_transaction on the server")
        }
        (false, true) => Check::new("locks", Verdict::Warn, detail)
            .next("pg_locks and pg_blocking_pids() name who holds what they wait for"),
        (false, false) => Check::new("locks", Verdict::Ok, detail),
    }
}

fn connections(connections: Connections) -> Check {
    let detail = format!("{} of {} are in use", connections.open, connections.most);
    match connections.are_short() {
        false => Check::new("connections", Verdict::Ok, detail),
        true => Check::new("connections", Verdict::Warn, detail)
            .next("raise max_connections on the server, or put a pooler between"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_warning_says_what_to_do_next() {
        let standby = |bytes| Standby { name: "two".to_owned(), bytes, lag_us: Some(1_500_000) };
        let room = LockRoom { held: 10, room: 6_400, waiting: 0, longest_us: None };
        let fine = [
            clock(Skew { ahead_us: -1_500, error_us: 400 }),
            replication(&[standby(Some(0))]),
            unsequenced(Some(0), Some(0)),
            unsequenced(Some(3), Some(0)),
            unsequenced(None, None),
            locks(room),
            locks(LockRoom { waiting: 2, ..room }),
            connections(Connections { open: 90, most: 100 }),
            schema(&SchemaState::Absent { may_make: true }),
            schema(&SchemaState::Ours { version: 1, newest: 1, lacks: Vec::new() }),
            listening(&Ok(())),
        ];
        for check in fine {
            assert!(check.verdict == Verdict::Ok && check.next.is_none(), "{}", check.detail);
        }
        let unseen = replication(&[standby(None)]);
        assert!(unseen.verdict == Verdict::Ok && unseen.next.is_some(), "{}", unseen.detail);
        let warned = [
            clock(Skew { ahead_us: 60_000_000, error_us: 400 }),
            replication(&[standby(Some(0)), standby(Some(1 << 30))]),
            unsequenced(Some(5_000), Some(0)),
            unsequenced(Some(1), Some(1)),
            locks(LockRoom { held: 6_000, ..room }),
            locks(LockRoom { waiting: 2, longest_us: Some(9_000_000), ..room }),
            connections(Connections { open: 91, most: 100 }),
            schema(&SchemaState::Absent { may_make: false }),
            schema(&SchemaState::Ours { version: 1, newest: 2, lacks: Vec::new() }),
            schema(&SchemaState::Ours { version: 1, newest: 1, lacks: vec!["GRANT".to_owned()] }),
            schema(&SchemaState::Closed { lacks: vec!["GRANT".to_owned()] }),
            schema(&SchemaState::Foreign("another program's".to_owned())),
            listening(&Err("it does not answer".to_owned())),
        ];
        for check in warned {
            assert!(check.verdict != Verdict::Ok && check.next.is_some(), "{}", check.detail);
        }
    }
}
