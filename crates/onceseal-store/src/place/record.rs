//! Small JSON files of our own: one canonical object that names its schema.

use onceseal_core::json::{self, Limits, Numbers, Object, Value};

/// The object of these bytes, without its `schema` member; otherwise what is
/// wrong, to follow the name of the file.
pub(crate) fn read(bytes: &[u8], schema: &str, members: usize) -> Result<Object, &'static str> {
    let limits =
        Limits { bytes: bytes.len(), depth: 3, members, text_chars: 1 << 14, numbers: Numbers::Integers };
    let Ok(value) = json::read(bytes, &limits) else { return Err("is not readable JSON") };
    let Value::Object(mut object) = value else { return Err("is not a JSON object") };
    match object.remove("schema") {
        Some(Value::Text(found)) if found == schema => Ok(object),
        _ => Err("has another schema"),
    }
}

/// The bytes of the object under this schema.
pub(crate) fn write(mut object: Object, schema: &str) -> Vec<u8> {
    object.insert("schema", schema);
    let mut text = json::canonical(&Value::Object(object));
    text.push('\n');
    text.into_bytes()
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads exactly `N` bytes of lower-case hexadecimal.
pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let text = text.as_bytes();
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn digit(c: u8) -> Option<u8> {
    match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_has_one_spelling() {
        assert_eq!(from_hex::<2>("0fa9"), Some([0x0f, 0xa9]));
        assert_eq!(hex(&[0x0f, 0xa9]), "0fa9");
        for wrong in ["0FA9", "0fa", "0fa9a", "0fg9", "0é9", " fa9"] {
            assert_eq!(from_hex::<2>(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_record_is_its_schema_or_nothing() {
        let mut object = Object::new();
        object.insert("id", "x");
        let bytes = write(object.clone(), "a/v1");
        assert_eq!(bytes, b"{\"id\":\"x\",\"schema\":\"a/v1\"}\n");
        assert_eq!(read(&bytes, "a/v1", 2), Ok(object));
        assert_eq!(read(&bytes, "a/v2", 2), Err("has another schema"));
        assert_eq!(read(b"{}", "a/v1", 2), Err("has another schema"));
        assert_eq!(read(b"[]", "a/v1", 2), Err("is not a JSON object"));
        assert_eq!(read(b"{", "a/v1", 2), Err("is not readable JSON"));
    }
}
