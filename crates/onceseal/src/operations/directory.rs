//! Who somebody is now. Roles are looked up each time that something is decided
//! by them, and never stored.

use std::sync::Arc;

use onceseal_core::action::Principal;

use super::tool::Answering;

/// How many roles one subject may have.
const ROLES_MAX: usize = 32;
/// How long the name of a role may be.
const ROLE_CHARS: usize = 255;

/// Knows who a subject is at this moment.
pub trait Directory: Send + Sync + 'static {
    /// Looks a subject of a tenant up. It is asked twice before an operation is
    /// accepted, and before each attempt.
    fn look_up<'a>(&'a self, tenant: &'a str, subject: &'a str) -> Answering<'a, Looked>;
}

/// What a directory says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Looked {
    /// There is such a subject.
    Is(Subject),
    /// There is none, or none any more: it may do nothing.
    Nobody,
    /// It cannot tell now.
    CannotTell,
}

/// A subject, as a directory knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The tenant that it is of.
    pub tenant: String,
    /// Its name there.
    pub subject: String,
    /// Its roles, in order and each once: at most 32 of 1 to 255 characters.
    pub roles: Vec<String>,
}

/// A principal with the roles that it has now.
#[derive(Debug, Clone, Copy)]
pub struct Current<'a> {
    /// Who asks.
    pub principal: &'a Principal,
    /// Its roles; none where no directory is asked.
    pub roles: &'a [String],
}

impl Subject {
    /// Whether these may be somebody's roles: at most 32, in order and each once,
    /// of 1 to 255 characters that are not all blank.
    #[must_use]
    pub fn has_form(roles: &[impl AsRef<str>]) -> bool {
        let fits = |role: &str| !role.trim().is_empty() && role.chars().count() <= ROLE_CHARS;
        roles.len() <= ROLES_MAX
            && roles.iter().all(|role| fits(role.as_ref()))
            && roles.is_sorted_by(|a, b| a.as_ref() < b.as_ref())
    }

    /// Whether it is what was asked for, and in form. A directory that answers
    /// for somebody else is not believed.
    fn answers(&self, tenant: &str, subject: &str) -> bool {
        self.tenant == tenant && self.subject == subject && Subject::has_form(&self.roles)
    }
}

/// The roles that a principal has now: `None` if it is nobody any more.
///
/// # Errors
/// It cannot be told.
pub(super) async fn roles(
    directory: Option<&Arc<dyn Directory>>,
    tenant: &str,
    principal: &Principal,
) -> Result<Option<Vec<String>>, CannotTell> {
    let Some(directory) = directory else { return Ok(Some(Vec::new())) };
    let name = principal.subject();
    match directory.look_up(tenant, &name).await {
        Looked::Is(subject) if subject.answers(tenant, &name) => Ok(Some(subject.roles)),
        Looked::Nobody => Ok(None),
        Looked::Is(_) | Looked::CannotTell => Err(CannotTell),
    }
}

/// Something outside could not be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CannotTell;
