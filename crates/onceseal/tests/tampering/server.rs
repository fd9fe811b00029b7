//! A store on a server: each tenant has a log of its own there, and what has no place
//! in it yet waits beside it.

use onceseal::config::{Settings, StoreAddress};
use onceseal::core::command::Command;
use onceseal::core::store::Note;
use onceseal::{AuditOptions, AuditReport, Control, Opening, audit};
use onceseal_servers::{Database, server};

use crate::ground::{Ground, audited, codes};
use crate::sample::{attempt, policy, wait};

/// A store in which something was done, and the audit of it.
struct Shared {
    ground: Ground,
    database: Database,
}

impl Shared {
    fn new() -> Shared {
        let shared = Shared { ground: Ground::new(), database: server().new_database() };
        let control = shared.open("default");
        wait(control.activate(policy(""), false, None)).expect("active");
        attempt(&control, "one");
        note(&control);
        control.close();
        shared
    }

    fn opening(&self, tenant: &str) -> Opening {
        let store = Some(StoreAddress::parse(&self.database.url()).expect("an address"));
        let settings = Settings { store, tenant: tenant.to_owned(), ..Settings::default() };
        Opening { settings, ..self.ground.opening() }
    }

    fn open(&self, tenant: &str) -> Control {
        Control::found(&self.opening(tenant)).expect("a store")
    }

    /// Audited by who only reads.
    fn audited(&self) -> AuditReport {
        audited(&Control::reading(&self.opening("default")).expect("readable").expect("a store"))
    }
}

fn note(control: &Control) {
    let note = Note { body: "1".to_owned(), source: "a test".to_owned() };
    control.store().run(Command::Note(note)).expect("a note");
}

fn says(report: &AuditReport, text: &str) -> bool {
    report.findings.iter().any(|finding| finding.sentence.contains(text))
}

#[test]
fn a_stream_moved_to_another_tenant_is_missed_by_the_log_whether_that_tenant_is_there_or_not() {
    for to in ["77", "2"] {
        // That of the store, of the policy, of an effect, of a note.
        for kind in [5, 4, 3, 6] {
            let shared = Shared::new();
            note(&shared.open("other"));
            assert_eq!(shared.audited().findings, []);
            let sql = format!(
                "UPDATE onceseal.streams SET tenant = {to} WHERE tenant = 1 AND kind = {kind} RETURNING id"
            );
            let moved = shared.database.sql(&sql);
            let id = moved.lines().next().expect("a stream");
            let place = format!("SELECT min(position) FROM onceseal.log WHERE tenant = 1 AND stream = {id}");
            let place: u64 = shared.database.sql(&place).parse().expect("a place");
            let report = shared.audited();
            let wrong = format!("stream number {id}, which is another tenant's");
            let named = report.findings.iter().any(|finding| {
                (finding.code, finding.position) == ("event_stray", Some(place))
                    && finding.sentence.ends_with(&wrong)
            });
            assert!(named, "kind {kind} to {to}: {:#?}", report.findings);
        }
    }
}

#[test]
fn a_store_whose_maker_was_taken_away_is_found_also_once_another_has_made_it_anew() {
    for (tamper, fits) in [
        ("UPDATE onceseal.streams SET tenant = 77 WHERE kind = 5", false),
        // All that belongs to it is taken out, and the places behind it moved up.
        (
            "DELETE FROM onceseal.events WHERE stream = (SELECT id FROM onceseal.streams WHERE kind = 5); \
             DELETE FROM onceseal.streams WHERE kind = 5; DELETE FROM onceseal.log WHERE position = 1; \
             UPDATE onceseal.log SET position = position + 1000; \
             UPDATE onceseal.log SET position = position - 1001",
            true,
        ),
    ] {
        let shared = Shared::new();
        shared.database.sql(&format!("{tamper}; UPDATE onceseal.tenants SET owner = 'os:mallory'"));
        let missing = |report: &AuditReport| {
            report
                .findings
                .iter()
                .any(|finding| finding.code == "event_missing" && finding.sequence == Some(1))
        };
        let report = shared.audited();
        assert!(missing(&report), "{:#?}", report.findings);
        std::fs::remove_dir_all(shared.ground.marks()).expect("no mark");
        note(&shared.open("default"));
        let report = shared.audited();
        assert!(missing(&report) == fits && !report.is_clean(), "{:#?}", report.findings);
    }
}

#[test]
fn the_owner_is_the_one_who_made_the_store() {
    let shared = Shared::new();
    shared.database.sql("UPDATE onceseal.tenants SET owner = 'os:mallory'");
    assert_eq!(codes(&shared.audited()), ["row_differs"]);
}

#[test]
fn the_end_of_the_log_cut_off_is_missed_by_the_events() {
    let shared = Shared::new();
    let newest = "(SELECT max(position) FROM onceseal.log)";
    shared.database.sql(&format!("DELETE FROM onceseal.log WHERE position = {newest}"));
    std::fs::remove_dir_all(shared.ground.marks()).expect("no mark");
    let report = shared.audited();
    assert!(says(&report, "1 events are neither in the log"), "{:#?}", report.findings);
}

#[test]
fn what_waits_for_a_place_that_it_has_is_found_and_so_is_a_sequence_that_is_behind() {
    for (tamper, wrong) in [
        (
            "INSERT INTO onceseal.unsequenced (tenant, events) \
             SELECT 1, int8send(stream) || int8send(sequence) FROM onceseal.log WHERE position = 3",
            "1 places in unsequenced name an event that is in the log already",
        ),
        ("SELECT setval('onceseal.stream_blocks', 1, false)", "SELECT setval('onceseal.stream_blocks', "),
    ] {
        let shared = Shared::new();
        shared.database.sql(tamper);
        let report = shared.audited();
        assert!(codes(&report) == ["integrity"] && says(&report, wrong), "{tamper}: {:#?}", report.findings);
    }
}

#[test]
fn what_the_auditing_role_may_not_look_into_is_a_note_and_no_fault() {
    let shared = Shared::new();
    let role = format!("reads_{}", shared.database.name());
    shared.database.sql(&format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'p'; GRANT USAGE ON SCHEMA onceseal TO {role}; \
         GRANT SELECT ON ALL TABLES IN SCHEMA onceseal TO {role}"
    ));
    let url = shared.database.url();
    let (_, host) = url.rsplit_once('@').expect("a host");
    let store = Some(StoreAddress::parse(&format!("postgres://{role}:p@{host}")).expect("an address"));
    let opening = Opening { settings: Settings { store, ..Settings::default() }, ..shared.ground.opening() };
    let control = Control::reading(&opening).expect("readable").expect("a store");
    let report = audit(&control, &AuditOptions::default());
    control.close();
    drop(control);
    shared.database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
    let report = report.expect("a report");
    assert_eq!(report.findings, []);
    let noted = report.notes.iter().any(|note| {
        note.code == "not_covered" && note.sentence.starts_with("the role may not look into stream_blocks")
    });
    assert!(noted, "{:#?}", report.notes);
}
