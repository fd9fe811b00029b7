//! A place for stores, and whoever changes them behind our back.

use std::path::PathBuf;
use std::sync::Arc;

use onceseal::audit::finding::Finding;
use onceseal::config::Settings;
use onceseal::core::stream::StreamId;
use onceseal::store::clock::{ManualClock, Reading};
use onceseal::store::place::Surroundings;
use onceseal::{AuditOptions, AuditReport, Control, Error, Opening, audit};
use rusqlite::Connection;

/// When every test begins: in 2026.
pub(crate) const START: Reading = Reading { wall_us: 1_767_268_800_000_000, boot_us: 0 };

/// A state directory of its own, with a home for marks.
pub(crate) struct Ground {
    _keep: tempfile::TempDir,
    path: PathBuf,
    pub(crate) clock: Arc<ManualClock>,
}

impl Ground {
    pub(crate) fn new() -> Ground {
        let keep = tempfile::tempdir().expect("a temporary directory");
        let path = keep.path().canonicalize().expect("its real path");
        Ground { _keep: keep, path, clock: Arc::new(ManualClock::new(START)) }
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join("state").join("onceseal.db")
    }

    /// Where this account keeps what it has seen of the store.
    pub(crate) fn marks(&self) -> PathBuf {
        self.path.join("xdg")
    }

    pub(crate) fn opening(&self) -> Opening {
        let surroundings = Surroundings {
            state: Some(self.path.join("state").into()),
            xdg_state_home: Some(self.marks().into()),
            home: None,
            ..Surroundings::of_process(self.path.clone())
        };
        let settings = Settings::default();
        Opening { surroundings, settings, clock: self.clock.clone(), sweep: false }
    }

    pub(crate) fn open(&self) -> Result<Control, Error> {
        Control::found(&self.opening())
    }

    /// The store as it is, for reading only.
    pub(crate) fn read(&self) -> Control {
        Control::reading(&self.opening()).expect("readable").expect("a store")
    }

    /// A store in memory.
    pub(crate) fn memory(&self) -> Control {
        let mut opening = self.opening();
        opening.settings.memory = true;
        Control::found(&opening).expect("memory")
    }

    /// Another ground with the same store, and no mark of it. The store must
    /// be closed.
    pub(crate) fn copy(&self) -> Ground {
        let copy = Ground::new();
        drop(copy.open().expect("a directory"));
        self.settle();
        copy.settle();
        std::fs::copy(self.database(), copy.database()).expect("a copy");
        std::fs::remove_dir_all(copy.marks()).expect("no mark");
        copy
    }

    /// Brings all of a closed store into its one file.
    pub(crate) fn settle(&self) {
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy: i64 = self.intruder().query_row(sql, [], |row| row.get(0)).expect("a checkpoint");
        assert_eq!(busy, 0, "the store is closed");
    }

    /// Whoever can write the file.
    pub(crate) fn intruder(&self) -> Connection {
        let connection = Connection::open(self.database()).expect("the file");
        connection
            .execute_batch(
                "PRAGMA foreign_keys=OFF; PRAGMA ignore_check_constraints=ON; PRAGMA synchronous=OFF;",
            )
            .expect("settings");
        connection
    }
}

pub(crate) fn audited(control: &Control) -> AuditReport {
    audit(control, &AuditOptions::default()).expect("a store that can be read")
}

pub(crate) fn codes(report: &AuditReport) -> Vec<&'static str> {
    report.findings.iter().map(|finding| finding.code).collect()
}

/// Where something stands, in the ways in which a finding may name it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    pub(crate) positions: Vec<i64>,
    pub(crate) streams: Vec<StreamId>,
    pub(crate) numbers: Vec<i64>,
}

impl Places {
    fn named_by(&self, finding: &Finding) -> bool {
        let position = |position: &i64| finding.position.is_some_and(|named| named as i64 == *position);
        let says = |text: String| {
            finding.sentence.split([' ', ',', ':']).collect::<Vec<_>>().join(" ").contains(&text)
        };
        self.positions
            .iter()
            .any(|p| position(p) || says(format!("position {p} ")) || says(format!("row {p} of ")))
            || self.streams.iter().any(|s| finding.stream == Some(*s) || says(s.to_string()))
            || self.numbers.iter().any(|n| says(format!("number {n} ")) || says(format!("row {n} of ")))
    }

    /// Asserts that what was done here was found, and found here.
    pub(crate) fn found(&self, what: &str, report: &AuditReport) {
        assert!(!report.is_clean(), "{what}: nothing was found");
        let named = report.findings.iter().any(|finding| self.named_by(finding));
        assert!(named, "{what}: {self:?} is not named by {:#?}", report.findings);
    }
}
