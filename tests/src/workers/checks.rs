//! What is promised, held against the remote's ledger and the record.

use std::collections::BTreeMap;
use std::process::Stdio;

use onceseal::core::json::Value;
use onceseal::operations::Operations;
use onceseal_example_refunds::Entry;

use super::trial::Trial;
use super::{payment, wish};

impl Trial {
    /// Holds the wishes against the remote's ledger, line by line.
    pub(super) fn compare(&mut self, paid: &[Entry]) -> (usize, usize) {
        let mut lines: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
        for entry in paid {
            lines.entry(&entry.payment).or_default().push(entry);
        }
        let (mut duplicates, mut lost) = (0, 0);
        for n in 0..self.size.operations {
            match lines.remove(payment(n).as_str()).as_deref() {
                None => {
                    lost += 1;
                    self.broken.push(format!("{} was never paid", payment(n)));
                }
                Some([_]) => {}
                Some(several) => {
                    duplicates += several.len() - 1;
                    self.broken.push(format!("{} was paid several times: {several:?}", payment(n)));
                }
            }
        }
        self.broken.extend(lines.keys().map(|payment| format!("{payment} was paid, and nobody wished it")));
        (duplicates, lost)
    }

    /// Whoever asks again is told that it is done, with the remote's own receipt.
    pub(super) async fn look(&mut self, operations: &Operations, paid: &[Entry]) {
        let receipts: BTreeMap<&str, &str> =
            paid.iter().map(|e| (e.id.as_str(), e.payment.as_str())).collect();
        for n in 0..self.size.operations {
            let told = wish(operations, n).tell().await.expect("answered");
            if told.code().is_some() || !told.answer().is_ok_and(|now| now.repeated) {
                self.broken.push(format!("{} is not committed: {told:?}", payment(n)));
                continue;
            }
            let audit = told.protected_audit().as_object();
            let remote = audit.and_then(|audit| audit.get("downstream")).and_then(Value::as_object);
            let receipt = remote.and_then(|remote| remote.get("receipt_id")).and_then(Value::as_text);
            let of = receipt.and_then(|receipt| receipts.get(receipt));
            if of != Some(&payment(n).as_str()) {
                self.broken.push(format!("{} has not the receipt of its refund: {receipt:?}", payment(n)));
            }
        }
    }

    pub(super) fn audit(&mut self) {
        let audit = self.command(&["audit", "--json"]).stdout(Stdio::piped()).output().expect("a run");
        let text = String::from_utf8_lossy(&audit.stdout);
        if !audit.status.success() || !text.contains("\"clean\":true") {
            self.broken.push(format!("seed {}: the audit is not clean: {text}", self.seed));
        }
    }
}
