//! Parse addresses as the plan and the kernel write them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::{Error, Result};

/// Parse `02:00:00:00:00:01`.
pub fn parse_mac(text: &str) -> Result<[u8; 6]> {
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut mac {
        let part = parts.next().unwrap_or_default();
        *byte = u8::from_str_radix(part, 16)
            .map_err(|_| Error::new(format!("{text:?} is not an Ethernet address")))?;
    }
    if parts.next().is_some() {
        return Err(Error::new(format!("{text:?} is not an Ethernet address")));
    }
    Ok(mac)
}

/// Parse `10.0.0.1/24` into an address and a prefix length.
pub fn parse_prefix(text: &str) -> Result<(IpAddr, u8)> {
    let wrong = || Error::new(format!("{text:?} is not an address with a prefix length"));
    let (address, length) = text.split_once('/').ok_or_else(wrong)?;
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let length: u8 = length.parse().map_err(|_| wrong())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    if length > most { Err(wrong()) } else { Ok((address, length)) }
}

/// Return an address from those of its two attributes that the kernel sent.
pub fn kernel_address(v4: Option<u32>, v6: Option<&[u8]>) -> Option<IpAddr> {
    match v4 {
        Some(bits) => Some(Ipv4Addr::from_bits(bits).into()),
        None => Some(Ipv6Addr::from(*v6?.first_chunk::<16>()?).into()),
    }
}

/// Return `AF_INET` or `AF_INET6`.
pub fn address_family(address: IpAddr) -> u8 {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    u8::try_from(family).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mac_has_exactly_six_bytes() {
        assert_eq!(parse_mac("02:00:00:00:0a:ff").unwrap(), [2, 0, 0, 0, 10, 255]);
        assert!(parse_mac("02:00:00:00:0a").is_err());
        assert!(parse_mac("02:00:00:00:0a:ff:00").is_err());
    }

    #[test]
    fn a_prefix_length_must_fit_the_family() {
        assert_eq!(parse_prefix("10.0.0.1/24").unwrap(), ("10.0.0.1".parse().unwrap(), 24));
        assert_eq!(parse_prefix("fd00::1/64").unwrap(), ("fd00::1".parse().unwrap(), 64));
        assert!(parse_prefix("10.0.0.1/33").is_err());
        assert!(parse_prefix("10.0.0.1").is_err());
    }
}
