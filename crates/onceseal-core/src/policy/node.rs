//! A value of the document together with the way to it, so that each error
//! says where it is. Nothing is allocated until there is an error.

use super::error::{Path, PolicyError, PolicyErrorKind, Step, nearest, type_name};
use crate::json::{Object, Value};
use crate::limits::is_name;

pub(super) struct Node<'a> {
    pub(super) value: &'a Value,
    around: Option<(&'a Node<'a>, Place<'a>)>,
}

#[derive(Clone, Copy)]
enum Place<'a> {
    Member(&'a str),
    Item(usize),
}

impl<'a> Node<'a> {
    pub(super) fn root(value: &'a Value) -> Node<'a> {
        Node { value, around: None }
    }

    pub(super) fn path(&self) -> Path {
        let mut steps = Vec::new();
        let mut node = self;
        while let Some((around, place)) = node.around {
            steps.push(match place {
                Place::Member(name) => Step::Name(name.to_owned()),
                Place::Item(index) => Step::Index(index),
            });
            node = around;
        }
        steps.reverse();
        Path::new(steps)
    }

    pub(super) fn fail(&self, kind: PolicyErrorKind) -> PolicyError {
        PolicyError { path: self.path(), position: None, kind }
    }

    fn wrong_type(&self, expected: &'static str) -> PolicyError {
        self.fail(PolicyErrorKind::WrongType { expected, found: type_name(self.value) })
    }

    /// The mapping it is.
    pub(super) fn object(&self) -> Result<&'a Object, PolicyError> {
        self.value.as_object().ok_or_else(|| self.wrong_type("a mapping"))
    }

    /// Its members.
    pub(super) fn members(&'a self) -> Result<impl Iterator<Item = (&'a str, Node<'a>)>, PolicyError> {
        Ok(self.object()?.iter().map(|(name, value)| (name, self.inner(Place::Member(name), value))))
    }

    /// Refuses members of other names than these.
    pub(super) fn closed(&self, known: &'static [&'static str]) -> Result<(), PolicyError> {
        self.closed_among(known, known)
    }

    /// The same, where somebody may have meant others that stand elsewhere.
    pub(super) fn closed_among(
        &self,
        here: &[&str],
        known: &'static [&'static str],
    ) -> Result<(), PolicyError> {
        match self.object()?.iter().find(|(name, _)| !here.contains(name)) {
            None => Ok(()),
            Some((key, value)) => {
                let suggestion = nearest(key, known.iter().copied().filter(|known| *known != key));
                Err(self.inner(Place::Member(key), value).fail(PolicyErrorKind::UnknownKey {
                    key: key.to_owned(),
                    suggestion,
                    known,
                }))
            }
        }
    }

    /// A member, if it is there.
    pub(super) fn get(&'a self, name: &'static str) -> Option<Node<'a>> {
        let value = self.value.as_object()?.get(name)?;
        Some(self.inner(Place::Member(name), value))
    }

    /// The items of a list.
    pub(super) fn items(&'a self) -> Result<impl Iterator<Item = Node<'a>>, PolicyError> {
        let items = self.value.as_list().ok_or_else(|| self.wrong_type("a list"))?;
        Ok(items.iter().enumerate().map(|(index, value)| self.inner(Place::Item(index), value)))
    }

    /// The items of a list that has some.
    pub(super) fn some_items(
        &'a self,
        what: &'static str,
    ) -> Result<impl Iterator<Item = Node<'a>>, PolicyError> {
        let mut items = self.items()?.peekable();
        match items.peek() {
            Some(_) => Ok(items),
            None => Err(self.fail(PolicyErrorKind::Empty(what))),
        }
    }

    pub(super) fn text(&self) -> Result<&'a str, PolicyError> {
        self.value.as_text().ok_or_else(|| self.wrong_type("text"))
    }

    pub(super) fn integer(&self) -> Result<i64, PolicyError> {
        self.value.as_integer().ok_or_else(|| self.wrong_type("an integer"))
    }

    /// Text that is one of these words, as its index.
    pub(super) fn word(&self, known: &'static [&'static str]) -> Result<usize, PolicyError> {
        let word = self.text()?;
        known.iter().position(|known| *known == word).ok_or_else(|| {
            let suggestion = nearest(word, known.iter().copied());
            self.fail(PolicyErrorKind::UnknownWord { word: word.to_owned(), suggestion, known })
        })
    }

    /// Text that may be a name.
    pub(super) fn name(&self) -> Result<&'a str, PolicyError> {
        let name = self.text()?;
        self.check_name(name)?;
        Ok(name)
    }

    /// Whether its own key may be a name.
    pub(super) fn check_name(&self, name: &str) -> Result<(), PolicyError> {
        if is_name(name) { Ok(()) } else { Err(self.fail(PolicyErrorKind::Name)) }
    }

    fn inner(&'a self, place: Place<'a>, value: &'a Value) -> Node<'a> {
        Node { value, around: Some((self, place)) }
    }
}
