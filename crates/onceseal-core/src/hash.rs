//! SHA-256 with a purpose in front of every preimage, and blinded names.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// A SHA-256 value; prints as `sha256:` and 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// SHA-256 of `purpose ‖ parts…`. A purpose ends in a line feed and names a
    /// version (`onceseal.event.v1\n`), so no two kinds of hash share a preimage.
    #[must_use]
    pub fn of(purpose: &str, parts: &[&[u8]]) -> Hash {
        let mut hasher = Sha256::new();
        hasher.update(purpose.as_bytes());
        for part in parts {
            hasher.update(part);
        }
        Hash(hasher.finalize().into())
    }

    /// Reads the printed form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Hash> {
        let mut bytes = [0; 32];
        read_hex(text.strip_prefix("sha256:")?, &mut bytes)?;
        Some(Hash(bytes))
    }

    /// Writes `sha256:` and the hex digits.
    pub fn write(&self, out: &mut String) {
        out.push_str("sha256:");
        write_hex(&self.0, out);
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(71);
        self.write(&mut text);
        f.write_str(&text)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The tenant's secret that turns clear names into stream names and redacted
/// values into hashes. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct BlindingKey(pub [u8; 32]);

impl BlindingKey {
    /// HMAC-SHA-256 (RFC 2104) of the parts, one after another.
    #[must_use]
    pub fn mac(&self, parts: &[&[u8]]) -> [u8; 32] {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else {
            unreachable!("HMAC takes keys of any length")
        };
        for part in parts {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for BlindingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Appends lower-case hex digits.
pub fn write_hex(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    // Sixteen bytes at a time: growing the text digit by digit costs more than the digits.
    for chunk in bytes.chunks(16) {
        let mut text = [0; 32];
        for (pair, byte) in text.chunks_exact_mut(2).zip(chunk) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        out.push_str(std::str::from_utf8(&text[..chunk.len() * 2]).unwrap_or_default());
    }
}

/// Reads exactly `into.len()` bytes of lower-case hex digits.
#[must_use]
pub fn read_hex(text: &str, into: &mut [u8]) -> Option<()> {
    fn digit(byte: u8) -> Option<u8> {
        match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        }
    }
    let text = text.as_bytes();
    if text.len() != into.len() * 2 {
        return None;
    }
    for (byte, pair) in into.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_sha256_of_purpose_and_parts() {
        // SHA-256("abc"), FIPS 180-4 example.
        let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Hash::of("a", &[b"b", b"c"]).to_string(), text);
        assert_eq!(Hash::parse(text), Some(Hash::of("abc", &[])));
        assert_eq!(Hash::parse(&text.to_uppercase()), None);
        assert_eq!(Hash::parse(&text[..70]), None);
    }

    #[test]
    fn a_mac_is_hmac_sha256_and_its_key_is_not_printed() {
        // RFC 4231 test case 1, its 20-byte key padded with zeros to 32 (HMAC pads so itself).
        let mut key = [0; 32];
        key[..20].fill(0x0b);
        let mut hex = String::new();
        write_hex(&BlindingKey(key).mac(&[b"Hi ", b"There"]), &mut hex);
        assert_eq!(hex, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
        assert_eq!(format!("{:?}", BlindingKey(key)), "[redacted]");
    }
}
