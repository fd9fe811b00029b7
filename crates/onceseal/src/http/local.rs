//! Destinations that only this machine, or what is on its link, can reach:
//! services that trust whoever reaches them, such as a cloud's metadata.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which hosts may lead to this machine or its link.
#[derive(Debug, Clone, Default)]
pub(crate) enum Local {
    /// Every one.
    #[default]
    Any,
    /// These, by their names as URLs have them.
    Only(BTreeSet<String>),
}

impl Local {
    pub(crate) fn only(hosts: impl IntoIterator<Item = impl AsRef<str>>) -> Local {
        Local::Only(hosts.into_iter().map(|host| plain(host.as_ref())).collect())
    }

    /// Whether two texts name the same host.
    pub(crate) fn is_same(host: &str, other: &str) -> bool {
        plain(host) == plain(other)
    }

    /// Whether requests to this host may go to all of these addresses: of a name
    /// that has a local one among others, none is tried.
    pub(crate) fn permits(&self, host: &str, addresses: impl IntoIterator<Item = IpAddr>) -> bool {
        match self {
            Local::Any => true,
            Local::Only(hosts) => hosts.contains(&plain(host)) || !addresses.into_iter().any(is_local),
        }
    }

    /// As far as the host's name alone says; [`Local::permits`] has the last word.
    pub(crate) fn permits_name(&self, host: &str) -> bool {
        let host = plain(host);
        let named = host.trim_end_matches('.');
        match host.parse() {
            Ok(address) => self.permits(&host, [address]),
            // RFC 6761, section 6.3.
            Err(_) if named == "localhost" || named.ends_with(".localhost") => {
                self.permits(&host, [IpAddr::V4(Ipv4Addr::LOCALHOST)])
            }
            Err(_) => true,
        }
    }
}

/// A host without brackets and case, which do not tell hosts apart.
fn plain(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase()
}

/// Loopback, link-local and unspecified addresses; in an IPv6 address that
/// stands for an IPv4 one, those of that.
fn is_local(address: IpAddr) -> bool {
    match address {
        // All of 0.0.0.0/8 is this host on this network (RFC 1122, 3.2.1.3).
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local() || v4.octets()[0] == 0,
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_unicast_link_local()
                || embedded(v6).is_some_and(|v4| is_local(v4.into()))
        }
    }
}

/// The IPv4 address that it stands for: mapped and compatible (RFC 4291, 2.5.5),
/// translated (RFC 6052, 2.1).
fn embedded(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    const TRANSLATED: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];
    let translated = v6.segments().starts_with(&TRANSLATED).then(|| {
        let [.., a, b, c, d] = v6.octets();
        Ipv4Addr::new(a, b, c, d)
    });
    translated.or_else(|| v6.to_ipv4())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_and_its_link_are_local_in_every_form_and_other_networks_are_not() {
        let local = [
            "127.0.0.1",
            "127.255.0.9",
            "169.254.169.254",
            "0.0.0.0",
            "0.1.2.3",
            "::1",
            "::",
            "fe80::1",
            "febf::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
        ];
        let other =
            ["10.0.0.1", "192.168.1.1", "93.184.216.34", "fd00::1", "2001:db8::1", "64:ff9b::5db8:d822"];
        for (addresses, expected) in [(&local[..], true), (&other[..], false)] {
            for address in addresses {
                assert_eq!(is_local(address.parse().expect("an address")), expected, "{address}");
            }
        }
    }

    #[test]
    fn a_host_is_permitted_by_its_name_as_the_url_has_it() {
        let loopback: IpAddr = Ipv4Addr::LOCALHOST.into();
        let one = Local::only(["[::1]", "Shop.test"]);
        assert!(one.permits_name("::1") && one.permits("shop.TEST", [loopback]));
        assert!(!one.permits_name("127.0.0.1") && !one.permits_name("[0:0:0:0:0:0:0:0001]"));
        for name in ["localhost", "LOCALHOST.", "a.localhost"] {
            assert!(!one.permits_name(name), "{name}");
        }
        assert!(one.permits_name("bank.example"));
        let bank = "93.184.216.34".parse().expect("an address");
        assert!(one.permits("bank.example", [bank]) && !one.permits("bank.example", [bank, loopback]));
        assert!(Local::Any.permits_name("127.0.0.1") && Local::Any.permits("x", [loopback]));
    }
}
