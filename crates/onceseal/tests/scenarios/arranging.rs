//! How a scenario changes the world, or the store behind its back.

use onceseal::core::stream::StreamKind;
use onceseal::fault;
use onceseal::operations::Subject;
use serde_json::Value;

use crate::drafts::{People, TENANT};
use crate::scene::{Scene, declared, open};
use crate::vectors::text;

impl Scene {
    /// Changes the world, or the store behind its back.
    pub(crate) async fn arrange(&mut self, op: &str, step: &Value) {
        let mut outside = self.world.outside();
        match op {
            "set_order" => {
                let status = text(step, "status").to_owned();
                outside.orders.get_mut(text(step, "order_ref")).expect("an order").1 = status;
            }
            "allow_orders" => outside.allowed = Some(texts(&step["orders"])),
            "set_people" => {
                let people = step["people"].as_array().expect("people").iter().map(|person| Subject {
                    tenant: text(person, "tenant_id").to_owned(),
                    subject: text(person, "subject_id").to_owned(),
                    roles: texts(&person["roles"]),
                });
                outside.people = Some(People::Named(people.collect()));
            }
            "resolver_answers" => {
                let answers = step["roles_by_lookup"].as_array().expect("answers").iter();
                let answers = answers.map(|roles| (!roles.is_null()).then(|| texts(roles)));
                outside.people = Some(People::Answers(answers.collect()));
            }
            "resolver_mode" => outside.people = Some(people(text(step, "mode"))),
            "decision_mode" => {
                outside.decision = Some(match text(step, "mode") {
                    "raises" => None,
                    "truthy_text" => Some(true),
                    other => panic!("no mode {other}"),
                });
            }
            "fail_on" => match text(step, "event") {
                "downstream_insert" => outside.full = true,
                event => self.failing = Some(event.to_owned()),
            },
            "stop_failing" => {
                outside.full = false;
                drop(outside);
                fault::disarm();
                self.failing = None;
            }
            "set_revision" => {
                let name = text(step, "field").split('_').next().expect("a name").to_owned();
                drop(outside);
                self.revisions.insert(name, text(step, "value").to_owned());
                self.operations = declared(&self.control, &self.world, &self.revisions).await;
            }
            "reopen" => {
                drop(outside);
                let control = self.control.clone();
                tokio::task::spawn_blocking(move || control.close()).await.expect("no panic");
                self.control = open(&self.home, &self.clock).await;
                self.operations = declared(&self.control, &self.world, &self.revisions).await;
            }
            "tamper" | "delete_rows" => {
                drop(outside);
                let column = step["set"].as_object().and_then(|set| set.keys().next());
                self.tamper(text(step, "table"), column.map_or("", String::as_str));
            }
            "set_journal" => {}
            other => panic!("no step {other}"),
        }
    }

    /// Changes what stands where their table would be: a row of ours, or what
    /// the remote has.
    fn tamper(&mut self, table: &str, column: &str) {
        if table == "downstream_receipts" {
            let mut outside = self.world.outside();
            outside.drafts = std::mem::take(&mut outside.drafts)
                .into_iter()
                .map(|(key, (mut draft, asked))| {
                    draft.remote.receipt_id = Some("forged".to_owned());
                    (key, (draft, asked))
                })
                .collect();
            return;
        }
        let last_byte = "CAST(substr({half}, 1, length({half}) - 1) || x'7f' AS BLOB)";
        let of_row = |kind: StreamKind, half: &str| {
            let changed = last_byte.replace("{half}", half);
            format!("UPDATE streams SET {half} = {changed} WHERE kind = {}", kind.number())
        };
        let texts = "UPDATE payloads SET text = replace(text, 'duplicate', 'damaged')";
        let sql = match (table, column) {
            ("call_bindings", _) => of_row(StreamKind::Call, "private"),
            ("operations", "arguments_json") | ("local_receipts", "result_json") => texts.to_owned(),
            ("local_receipts", _) => of_row(StreamKind::Effect, "private"),
            ("operations", _) => of_row(StreamKind::Action, "private"),
            (_, _) => of_row(StreamKind::Action, "open"),
        };
        let intruder = rusqlite::Connection::open(self.database()).expect("a database");
        let changed = intruder.execute(&sql, []).expect("SQL");
        assert!(changed > 0, "nothing of {table} to change");
    }
}

fn people(mode: &str) -> People {
    let wrong = |tenant: &str, subject: &str, roles: Vec<String>| {
        let (tenant, subject) = (tenant.to_owned(), subject.to_owned());
        People::Wrong(Subject { tenant, subject, roles })
    };
    let roles = |n: usize| (0..n).map(|n| format!("r{n:02}")).collect();
    match mode {
        // What is of another type in the reference is another tenant's here.
        "raises" | "text" => People::CannotTell,
        "other_tenant" => wrong("tenant-b", "user-1", Vec::new()),
        "other_subject" => wrong(TENANT, "user-2", Vec::new()),
        "33_roles" => wrong(TENANT, "user-1", roles(33)),
        "32_roles" => wrong(TENANT, "user-1", roles(32)),
        "duplicate_role" => wrong(TENANT, "user-1", vec!["a".to_owned(); 2]),
        other => panic!("no mode {other}"),
    }
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().expect("a list").iter();
    list.map(|text| text.as_str().expect("text").to_owned()).collect()
}
