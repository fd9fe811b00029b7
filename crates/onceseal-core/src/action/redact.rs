//! Arguments as they are hashed: redacted values blinded, incidental ones left out.

use crate::hash::{BlindingKey, write_hex};
use crate::json::{self, Object, Value};
use crate::policy::ArgumentPath;

/// The arguments with each value at `paths` replaced by
/// `{"redacted": hex(HMAC-SHA-256(key, "onceseal.redact.v1\n" ‖ canonical value))}`;
/// `None` if none of them is there. A path that is stopped by a list or another
/// value that is no object blinds all of that: it may hold what is meant.
pub(super) fn redact(key: &BlindingKey, paths: &[ArgumentPath], arguments: &Object) -> Option<Object> {
    let mut redacted: Option<Object> = None;
    for path in paths {
        let Some((names, value)) = reach(arguments, path.names()) else { continue };
        let mac = key.mac(&[b"onceseal.redact.v1\n", json::canonical(value).as_bytes()]);
        let mut hex = String::with_capacity(64);
        write_hex(&mac, &mut hex);
        let mut hidden = Object::new();
        hidden.insert("redacted", hex);
        if let Some((object, name)) = parent(redacted.get_or_insert_with(|| arguments.clone()), names) {
            object.insert(name, hidden);
        }
    }
    redacted
}

/// Takes the value at a path out, if it is there.
pub(super) fn remove(arguments: &mut Object, path: &ArgumentPath) {
    if let Some((object, name)) = parent(arguments, path.names()) {
        object.remove(name);
    }
}

/// The value a path leads to, or is stopped by, and the names up to there.
fn reach<'a, 'p>(arguments: &'a Object, names: &'p [String]) -> Option<(&'p [String], &'a Value)> {
    let mut object = arguments;
    for at in 1..=names.len() {
        let value = object.get(&names[at - 1])?;
        match value {
            Value::Object(inner) if at < names.len() => object = inner,
            value => return Some((&names[..at], value)),
        }
    }
    None
}

/// The object that the last of these names is a member of.
fn parent<'a, 'p>(arguments: &'a mut Object, names: &'p [String]) -> Option<(&'a mut Object, &'p str)> {
    let (last, way) = names.split_last()?;
    let mut object = arguments;
    for name in way {
        match object.get_mut(name)? {
            Value::Object(inner) => object = inner,
            _ => return None,
        }
    }
    Some((object, last))
}
