//! The packed form of a record: what stores keep instead of text.
//!
//! One value has one packed form and every other byte string is refused, so
//! `pack(unpack(bytes)) == bytes`. Integers are LEB128 without padding, times
//! eight bytes big-endian, hashes and ids their bytes, text its length and
//! UTF-8, an option a byte 0 or 1 (a late one nothing, or its value), a list its length and items, a record its
//! fields in order.

use crate::hash::Hash;
use crate::id::{ActionId, ApprovalId, HolderId, ReceiptId, RootId, RunId};
use crate::time::Timestamp;

/// Stored bytes that are not what we write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stored {0} does not decode: the row or event was changed outside Onceseal")]
pub struct Corrupt(pub &'static str);

/// A value with a packed form.
pub trait Pack: Sized {
    /// Appends the packed form.
    fn pack(&self, out: &mut Vec<u8>);

    /// Takes one value off the front of `input`.
    ///
    /// # Errors
    /// [`Corrupt`] for anything that [`Pack::pack`] does not write.
    fn unpack(input: &mut &[u8]) -> Result<Self, Corrupt>;

    /// The packed form on its own.
    fn packed(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        self.pack(&mut out);
        out
    }

    /// Reads a packed form that is nothing else.
    ///
    /// # Errors
    /// As [`Pack::unpack`], and for bytes left over.
    fn unpacked(mut input: &[u8]) -> Result<Self, Corrupt> {
        let value = Self::unpack(&mut input)?;
        if input.is_empty() { Ok(value) } else { Err(Corrupt("record with bytes left over")) }
    }
}

/// Takes `n` bytes off the front.
pub(crate) fn take<'a>(input: &mut &'a [u8], n: usize, what: &'static str) -> Result<&'a [u8], Corrupt> {
    let (head, rest) = input.split_at_checked(n).ok_or(Corrupt(what))?;
    *input = rest;
    Ok(head)
}

fn take_array<const N: usize>(input: &mut &[u8], what: &'static str) -> Result<[u8; N], Corrupt> {
    take(input, N, what)?.try_into().map_err(|_| Corrupt(what))
}

impl Pack for u8 {
    fn pack(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }
    fn unpack(input: &mut &[u8]) -> Result<u8, Corrupt> {
        Ok(take_array::<1>(input, "byte")?[0])
    }
}

impl Pack for bool {
    fn pack(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn unpack(input: &mut &[u8]) -> Result<bool, Corrupt> {
        match u8::unpack(input)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Corrupt("boolean")),
        }
    }
}

impl Pack for u64 {
    fn pack(&self, out: &mut Vec<u8>) {
        let mut rest = *self;
        while rest >= 0x80 {
            out.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        out.push(rest as u8);
    }
    fn unpack(input: &mut &[u8]) -> Result<u64, Corrupt> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = u8::unpack(input)?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return Err(Corrupt("integer"));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return if byte == 0 && shift > 0 { Err(Corrupt("integer")) } else { Ok(value) };
            }
        }
        Err(Corrupt("integer"))
    }
}

impl Pack for u32 {
    fn pack(&self, out: &mut Vec<u8>) {
        u64::from(*self).pack(out);
    }
    fn unpack(input: &mut &[u8]) -> Result<u32, Corrupt> {
        u64::unpack(input)?.try_into().map_err(|_| Corrupt("integer"))
    }
}

impl Pack for Timestamp {
    fn pack(&self, out: &mut Vec<u8>) {
        out.extend(self.micros().to_be_bytes());
    }
    fn unpack(input: &mut &[u8]) -> Result<Timestamp, Corrupt> {
        Timestamp::from_micros(i64::from_be_bytes(take_array(input, "time")?)).ok_or(Corrupt("time"))
    }
}

impl Pack for String {
    fn pack(&self, out: &mut Vec<u8>) {
        (self.len() as u64).pack(out);
        out.extend(self.as_bytes());
    }
    fn unpack(input: &mut &[u8]) -> Result<String, Corrupt> {
        let length = u64::unpack(input)?.try_into().map_err(|_| Corrupt("text"))?;
        let bytes = take(input, length, "text")?;
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Corrupt("text"))
    }
}

macro_rules! pack_bytes {
    ($($name:ident),*) => {$(
        impl Pack for $name {
            fn pack(&self, out: &mut Vec<u8>) {
                out.extend(self.0);
            }
            fn unpack(input: &mut &[u8]) -> Result<$name, Corrupt> {
                take_array(input, stringify!($name)).map($name)
            }
        }
    )*};
}
pack_bytes!(Hash, ActionId, ApprovalId, HolderId, ReceiptId, RootId, RunId);

impl<T: Pack> Pack for Option<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        self.is_some().pack(out);
        if let Some(value) = self {
            value.pack(out);
        }
    }
    fn unpack(input: &mut &[u8]) -> Result<Option<T>, Corrupt> {
        bool::unpack(input)?.then(|| T::unpack(input)).transpose()
    }
}

impl<T: Pack> Pack for Box<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        (**self).pack(out);
    }
    fn unpack(input: &mut &[u8]) -> Result<Box<T>, Corrupt> {
        T::unpack(input).map(Box::new)
    }
}

impl<T: Pack> Pack for Vec<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        (self.len() as u64).pack(out);
        for item in self {
            item.pack(out);
        }
    }
    fn unpack(input: &mut &[u8]) -> Result<Vec<T>, Corrupt> {
        let length = u64::unpack(input)?;
        // Every item takes at least a byte, so a made-up length ends here.
        if length > input.len() as u64 {
            return Err(Corrupt("list"));
        }
        (0..length).map(|_| T::unpack(input)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_integer_has_one_packed_form() {
        for n in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(u64::unpacked(&n.packed()), Ok(n));
        }
        for bad in [
            &[0x80, 0x00][..],
            &[0x80],
            &[],
            &[0xff; 11],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
        ] {
            assert!(u64::unpacked(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_we_do_not_write_is_refused() {
        assert!(bool::unpacked(&[2]).is_err());
        assert!(String::unpacked(&[2, 0xff, 0xff]).is_err());
        assert!(String::unpacked(&[9, b'a']).is_err());
        assert!(Vec::<u64>::unpacked(&[0xff, 0xff, 0xff, 0xff, 0x0f]).is_err());
        assert!(Timestamp::unpacked(&(-1i64).to_be_bytes()).is_err());
        assert!(u8::unpacked(&[1, 2]).is_err());
    }
}
