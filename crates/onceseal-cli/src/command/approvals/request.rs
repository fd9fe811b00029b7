//! One request before a person's eyes, or a program's: the action that it is about,
//! and what else is known of it.

use onceseal::core::action::ActionRow;
use onceseal::core::approval::ApprovalRow;
use onceseal::core::code::Code;
use onceseal::core::hash::Hash;
use onceseal::core::id::ApprovalId;
use onceseal::core::json::{Object, Value};
use onceseal::core::time::Timestamp;
use onceseal::runs::BIND_DELIVERY;
use onceseal::store::StoreError;
use onceseal::{Control, render};

use super::Show;
use crate::command::actions::as_object;
use crate::command::list;
use crate::context::Context;
use crate::error::CliError;
use crate::show::{self, Asked, Contract};
use crate::standing;
use crate::text::{literal, object_deceives, shown};

/// What a request is about, if that is a delivery. A list does not fail where
/// nothing is known of one request.
pub(super) fn asked_in_list(control: &Control, row: &ApprovalRow) -> Result<Option<Asked>, CliError> {
    let name = row.private.bound.name.as_deref();
    if name != Some(BIND_DELIVERY) {
        return Ok(None);
    }
    match control.shown_arguments(row.action, false) {
        Ok(arguments) => Asked::of(control, name, &arguments),
        Err(error) if error.code() == Code::Erased.as_str() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A request as JSON has it, with where it stands now.
pub(super) fn rendered(id: ApprovalId, row: &ApprovalRow, asked: Option<&Asked>, now: Timestamp) -> Object {
    let mut object = as_object(render::approval(id, row));
    object.insert("delivery", asked.map_or(Value::Null, |asked| asked.object().into()));
    object.insert("status", standing::status(row, now).as_str());
    object
}

/// A request with its action and arguments.
pub(super) struct Request {
    pub(super) id: ApprovalId,
    pub(super) row: ApprovalRow,
    pub(super) action: ActionRow,
    pub(super) arguments: Object,
    /// The contract that it binds, if a worker is to carry the action out.
    pub(super) contract: Option<Contract>,
    /// The delivery that it binds, if it binds one.
    pub(super) delivery: Option<Asked>,
    /// What people said of it.
    pub(super) reasons: Vec<(Option<String>, String)>,
}

impl Request {
    pub(super) fn find(context: &Context, control: &Control, show: &Show) -> Result<Request, CliError> {
        let unknown = || CliError::missing(Code::ApprovalUnknown).next("onceseal approvals list");
        let row = control.approval(show.id)?.ok_or_else(unknown)?;
        let action = control.action_row(row.action)?.ok_or_else(list::corrupt)?;
        let reveal = show.reveal || context.out.is_terminal();
        let arguments = control.shown_arguments(row.action, reveal)?;
        let contract = match row.private.bound.contract {
            Some(digest) => Some(Contract::of(digest, control.store().tool(digest)?)?),
            None => None,
        };
        let delivery = Asked::of(control, row.private.bound.name.as_deref(), &arguments)?;
        Ok(Request {
            id: show.id,
            row,
            action,
            arguments,
            contract,
            delivery,
            reasons: control.reasons(show.id)?,
        })
    }

    pub(super) fn binding(&self) -> Result<Hash, CliError> {
        let binding = self.row.private.bound.binding;
        binding.ok_or_else(|| StoreError::new(Code::Erased).into())
    }

    pub(super) fn text(&self, control: &Control) -> String {
        let (now, width) = (control.store().now(), columns());
        let contract = self.contract.iter().flat_map(Contract::rows);
        let reasons = self.reasons.iter().map(|(person, reason)| {
            let person = person.as_deref().map_or("erased".to_owned(), shown);
            ("because", format!("{person}: {}", literal(&Value::from(reason.as_str()))))
        });
        let known = contract.chain(self.delivery.iter().flat_map(Asked::rows)).chain(reasons).collect();
        show::approval(self.id, &self.row, &self.action, &self.arguments, known, now, width)
    }

    pub(super) fn object(&self, control: &Control) -> Object {
        let mut object = rendered(self.id, &self.row, self.delivery.as_ref(), control.store().now());
        let suspicious = object_deceives(&self.arguments);
        let mut action = as_object(render::action(self.row.action, &self.action));
        action.insert("arguments", self.arguments.clone());
        action.insert("arguments_have_hidden_characters", suspicious);
        object.insert("whole_action", action);
        let reasons = self.reasons.iter().map(|(person, reason)| {
            let mut said = Object::new();
            said.insert("person", person.clone().map_or(Value::Null, Value::Text));
            said.insert("reason", reason.as_str());
            said.into()
        });
        object.insert("reasons", Value::List(reasons.collect()));
        let contract = self.contract.as_ref().map(Contract::object);
        object.insert("contract", contract.map_or(Value::Null, Value::Object));
        object
    }
}

/// Columns that a line may have, a little less than most terminals.
fn columns() -> usize {
    terminal_size::terminal_size()
        .map_or(100, |(terminal_size::Width(columns), _)| usize::from(columns).min(100))
}
