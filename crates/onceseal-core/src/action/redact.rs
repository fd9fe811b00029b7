//! Arguments as they are hashed: redacted values blinded, incidental ones left out.

use crate::hash::{BlindingKey, write_hex};
use crate::json::{self, Object, Value};
use crate::policy::ArgumentPath;

/// The arguments with each value at `paths` replaced by
/// `{"redacted": hex(HMAC-SHA-256(key, "onceseal.redact.v1\n" ‖ canonical value))}`;
/// `None` if none of them is there.
pub(super) fn redact(key: &BlindingKey, paths: &[ArgumentPath], arguments: &Object) -> Option<Object> {
    let mut redacted: Option<Object> = None;
    for path in paths {
        let Some(value) = path.find(arguments) else { continue };
        let mac = key.mac(&[b"onceseal.redact.v1\n", json::canonical(value).as_bytes()]);
        let mut hex = String::with_capacity(64);
        write_hex(&mac, &mut hex);
        let mut hidden = Object::new();
        hidden.insert("redacted", hex);
        if let Some((object, name)) = parent(redacted.get_or_insert_with(|| arguments.clone()), path) {
            object.insert(name, hidden);
        }
    }
    redacted
}

/// Takes the value at a path out, if it is there.
pub(super) fn remove(arguments: &mut Object, path: &ArgumentPath) {
    if let Some((object, name)) = parent(arguments, path) {
        object.remove(name);
    }
}

/// The object that a path's last name is a member of.
fn parent<'a, 'p>(arguments: &'a mut Object, path: &'p ArgumentPath) -> Option<(&'a mut Object, &'p str)> {
    let (last, way) = path.names().split_last()?;
    let mut object = arguments;
    for name in way {
        match object.get_mut(name)? {
            Value::Object(inner) => object = inner,
            _ => return None,
        }
    }
    Some((object, last))
}
