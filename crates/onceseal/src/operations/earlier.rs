//! Contracts that a program's tools had before: what was accepted under one is
//! carried out under it, from the text that is stored with it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use onceseal_core::code::Code;
use onceseal_core::hash::Hash;
use onceseal_core::journal::Row;
use onceseal_store::StoreError;
use onceseal_store::read::{Rows, row_of};

use super::declared::Declared;
use super::tool::Tool;
use crate::control::Control;

/// Contracts rebuilt from their stored text.
pub(super) struct Earlier {
    /// Where their programs run.
    directory: PathBuf,
    /// Each that was looked at; `None` if it cannot be carried out from its text.
    built: Mutex<BTreeMap<Hash, Option<Tool>>>,
}

impl Earlier {
    pub(super) fn new(directory: PathBuf) -> Earlier {
        Earlier { directory, built: Mutex::default() }
    }

    /// The tool of a contract, if its text says how it is carried out.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(super) fn tool(&self, control: &Control, digest: Hash) -> Result<Option<Tool>, StoreError> {
        let known = |built: &Mutex<BTreeMap<Hash, Option<Tool>>>| {
            built.lock().unwrap_or_else(PoisonError::into_inner).get(&digest).cloned()
        };
        if let Some(tool) = known(&self.built) {
            return Ok(tool);
        }
        let text = match control.store().tool(digest) {
            Ok(tool) => tool.map(|tool| tool.text),
            // What cannot be read of one contract keeps no other from being carried out.
            Err(error) if matches!(error.code(), Code::Corrupt | Code::Erased) => None,
            Err(error) => return Err(error),
        };
        let declared = text.and_then(|text| Declared::stored(&text, &self.directory));
        let tool = declared.and_then(|declared| declared.tool().ok());
        let tool = tool.filter(|tool| tool.digest() == digest);
        self.built.lock().unwrap_or_else(PoisonError::into_inner).insert(digest, tool.clone());
        Ok(tool)
    }
}

/// The contracts of the tool of this name that are active.
pub(super) fn active(control: &Control, snapshot: &dyn Rows, name: &str) -> Result<Vec<Hash>, StoreError> {
    let row = row_of(snapshot.stream(&control.store().tenant().tool(name))?);
    Ok(match row.map(|stored| stored.row) {
        Some(Row::Tool(row)) => row.active,
        _ => Vec::new(),
    })
}
