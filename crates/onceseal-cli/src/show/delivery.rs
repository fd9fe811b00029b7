//! A delivery before the eyes of the person who is asked to approve it: to which
//! run, at which gate, and what stays for ever.

use onceseal::Control;
use onceseal::core::json::{Object, Value};
use onceseal::runs::{AskedDelivery, BIND_DELIVERY};

use crate::command::refused::integer;
use crate::error::CliError;
use crate::text::shown;

/// What is asked about a delivery. Nothing of it is in the requester's words alone:
/// the run is one of the store's, and the gate one of its definition.
pub(crate) struct Asked(AskedDelivery);

impl Asked {
    /// What is asked by an action of this name, if that is to bind a delivery.
    pub(crate) fn of(
        control: &Control,
        name: Option<&str>,
        arguments: &Object,
    ) -> Result<Option<Asked>, CliError> {
        if name != Some(BIND_DELIVERY) {
            return Ok(None);
        }
        Ok(control.asked_delivery(arguments)?.map(Asked))
    }

    /// The run as people name it.
    fn change(&self) -> String {
        let row = &self.0.run.row;
        let key = row.private.key.as_deref().map(|key| key.strip_prefix("change:").unwrap_or(key));
        format!("{}/{}", shown(&row.kind), key.map_or("erased".to_owned(), shown))
    }

    /// In a table.
    pub(crate) fn word(&self) -> String {
        let delivery = &self.0.delivery;
        format!("{} {} of {}", shown(&delivery.gate), delivery.revision, self.change())
    }

    /// For programs.
    pub(crate) fn object(&self) -> Object {
        let AskedDelivery { run, delivery, .. } = &self.0;
        let key = run.row.private.key.as_deref();
        let optional = |text: Option<String>| text.map_or(Value::Null, Value::Text);
        let mut object = Object::new();
        object.insert("run", run.id.to_string());
        object.insert("kind", run.row.kind.as_str());
        object.insert("key", optional(key.map(str::to_owned)));
        object.insert("state", run.row.state.as_str());
        object.insert("gate", delivery.gate.as_str());
        object.insert("revision", integer(delivery.revision));
        object.insert("receipt", delivery.receipt.to_string());
        object.insert("contract", optional(delivery.contract.map(|hash| hash.to_string())));
        object.insert("record", optional(delivery.record.map(|hash| hash.to_string())));
        object.insert(
            "cannot_be_bound",
            optional(self.0.cannot_be_bound().map(|code| code.as_str().to_owned())),
        );
        object
    }

    /// For people.
    pub(crate) fn rows(&self) -> Vec<(&'static str, String)> {
        let AskedDelivery { run, delivery, .. } = &self.0;
        let mut rows = vec![
            ("to bind", format!("{}, once for ever", self.word())),
            ("run", format!("{}, {}", run.id, shown(&run.row.state))),
            ("delivered", format!("{}, as `sha256sum` prints it of a file", delivery.receipt)),
        ];
        let more = [("contract", delivery.contract), ("record", delivery.record)];
        rows.extend(more.into_iter().filter_map(|(name, hash)| Some((name, hash?.to_string()))));
        if let Some(code) = self.0.cannot_be_bound() {
            rows.push(("but", format!("{}: {}", code.as_str(), code.sentence())));
        }
        rows
    }
}
