//! Ids: 16 bytes, time-ordered (RFC 9562 UUIDv7), printed as a prefix and 32
//! hex digits. They are derived from a command, never drawn here.

use std::fmt;

use crate::hash::{read_hex, write_hex};

/// A UUIDv7 of a moment in milliseconds and 16 random bytes (RFC 9562 §5.7).
#[must_use]
pub fn uuid_v7(unix_millis: u64, random: [u8; 32]) -> [u8; 16] {
    let mut id = [0; 16];
    id.copy_from_slice(&random[..16]);
    id[..6].copy_from_slice(&unix_millis.to_be_bytes()[2..]);
    id[6] = 0x70 | id[6] & 0x0f;
    id[8] = 0x80 | id[8] & 0x3f;
    id
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; 16]);

        impl $name {
            /// What stands before the hex digits.
            pub const PREFIX: &'static str = $prefix;

            /// Reads the printed form; any 32 lower-case hex digits will do.
            #[must_use]
            pub fn parse(text: &str) -> Option<$name> {
                let mut bytes = [0; 16];
                read_hex(text.strip_prefix($prefix)?, &mut bytes)?;
                Some($name(bytes))
            }

            /// Writes the prefix and the hex digits.
            pub fn write(&self, out: &mut String) {
                out.push_str($prefix);
                write_hex(&self.0, out);
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut text = String::with_capacity(36);
                self.write(&mut text);
                f.write_str(&text)
            }
        }
    )*};
}

macro_rules! told {
    ($($name:ident)*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}

ids! {
    /// One action.
    ActionId = "act_";
    /// One approval.
    ApprovalId = "apr_";
    /// One receipt.
    ReceiptId = "rcp_";
    /// One run.
    RunId = "run_";
    /// Whoever holds leases, as everybody may know it: [`HolderKey`] blinded.
    HolderId = "holder_";
    /// What lets a holder ask again for what it has: random for each process, and
    /// told to nobody, since whoever names it is given the leases.
    HolderKey = "holderkey_";
    /// One project, as it is known wherever it lies.
    RootId = "root_";
}

told! { ActionId ApprovalId ReceiptId RunId HolderId RootId }

/// Without the key.
impl fmt::Debug for HolderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HolderKey").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_order_by_time_and_read_back() {
        let early = ActionId(uuid_v7(1, [0xff; 32]));
        let late = ActionId(uuid_v7(2, [0; 32]));
        assert!(early < late);
        assert_eq!(early.to_string(), "act_0000000000017fffbfffffffffffffff");
        assert_eq!(ActionId::parse(&early.to_string()), Some(early));
        for bad in ["act_", "apr_0000000000017fffbfffffffffffffff", "act_0000000000017FFFBFFFFFFFFFFFFFFF"] {
            assert_eq!(ActionId::parse(bad), None, "{bad}");
        }
    }
}
