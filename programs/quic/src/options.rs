//! The command line.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use lexopt::Arg::{Long, Short, Value};
use lexopt::ValueExt;

/// What `--help` prints.
pub const HELP: &str = "\
Transfers and requests over QUIC, multipath QUIC, or TLS over TCP.

Usage: plait-quic server [OPTIONS] --at ADDRESS..
       plait-quic client [OPTIONS] --path LOCAL,REMOTE..

The client connects over its first path and opens the others. It sends requests one after the other, each
on a stream of its own, and prints one line of JSON. The server serves one connection and does the same.

  --at ADDRESS          Local address of the server, once for each path; an IP address or a name
  --path LOCAL,REMOTE   Addresses of a path at client and server, once for each path
  --port NUMBER         Port of the server [default: 4433]
  --protocol NAME       quic, mpquic or tls (over TCP; only the first path) [default: mpquic]
  --congestion NAME     cubic, newreno or bbr3, of QUIC [default: cubic]
  --requests NUMBER     Number of requests [default: 1]
  --send BYTES          Size of a request [default: 0]
  --receive BYTES       Size of an answer [default: 1000000]
  --window BYTES        Receive window of QUIC [default: 6291456]
  --path-timeout MS     Give up a path that is silent for so long, 0 for never [default: 1000]
  --timeout SECONDS     Give up after so long [default: 300]
";

/// What carries the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// QUIC over the first path.
    Quic,
    /// Multipath QUIC.
    MpQuic,
    /// TLS 1.3 over TCP.
    Tls,
}

/// The congestion control of QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// RFC 9438.
    Cubic,
    /// RFC 9002.
    NewReno,
    /// draft-ietf-ccwg-bbr.
    Bbr3,
}

/// A path: a local address and the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSpec {
    /// The client's address.
    pub local: IpAddr,
    /// The server's address and port.
    pub remote: SocketAddr,
}

/// The role and what only it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Serves one connection at these addresses.
    Server(Vec<SocketAddr>),
    /// Connects over the first of these paths.
    Client(Vec<PathSpec>),
}

/// The requests of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    /// How many, one after the other.
    pub count: u64,
    /// Bytes of a request.
    pub send: u64,
    /// Bytes of an answer.
    pub receive: u64,
}

/// The command line, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Server or client.
    pub role: Role,
    /// What carries the requests.
    pub protocol: Protocol,
    /// The congestion control of QUIC.
    pub congestion: Congestion,
    /// What the client requests.
    pub requests: Requests,
    /// The receive window of QUIC in bytes.
    pub window: u32,
    /// Silence after which a path is given up.
    pub path_timeout: Option<Duration>,
    /// The time limit of everything.
    pub timeout: Duration,
}

const LARGEST: u64 = 1 << 40;

/// Parse the arguments behind the program's name. None: the person asked for help.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Option<Options>, String> {
    read(arguments).map_err(|error| format!("reading the command line: {error}; see plait-quic --help"))
}

fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Option<Options>, lexopt::Error> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let (mut role, mut at, mut paths, mut port) = (None, Vec::new(), Vec::new(), 4433);
    let (mut protocol, mut congestion) = (Protocol::MpQuic, Congestion::Cubic);
    let mut requests = Requests { count: 1, send: 0, receive: 1_000_000 };
    let (mut window, mut path_timeout, mut timeout) = (6_291_456, 1000, 300);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') | Long("help") => return Ok(None),
            Long("at") => at.push(parser.value()?.string()?),
            Long("path") => paths.push(parser.value()?.string()?),
            Long("port") => port = number(&mut parser, 1, 65535)?,
            Long("protocol") => {
                protocol = match parser.value()?.string()?.as_str() {
                    "quic" => Protocol::Quic,
                    "mpquic" => Protocol::MpQuic,
                    "tls" => Protocol::Tls,
                    other => return Err(wrong("--protocol", other, "quic, mpquic or tls")),
                }
            }
            Long("congestion") => {
                congestion = match parser.value()?.string()?.as_str() {
                    "cubic" => Congestion::Cubic,
                    "newreno" => Congestion::NewReno,
                    "bbr3" => Congestion::Bbr3,
                    other => return Err(wrong("--congestion", other, "cubic, newreno or bbr3")),
                }
            }
            Long("requests") => requests.count = number(&mut parser, 1, 1_000_000)?,
            Long("send") => requests.send = number(&mut parser, 0, LARGEST)?,
            Long("receive") => requests.receive = number(&mut parser, 1, LARGEST)?,
            Long("window") => window = number(&mut parser, 1 << 14, 1 << 30)?,
            Long("path-timeout") => path_timeout = number(&mut parser, 0, 600_000)?,
            Long("timeout") => timeout = number(&mut parser, 1, 86_400)?,
            Value(word) if role.is_none() => role = Some(word.string()?),
            other => return Err(other.unexpected()),
        }
    }
    let port = u16::try_from(port).expect("it was checked");
    let role = match role.as_deref() {
        Some("server") if at.is_empty() => return Err("a server needs --at ADDRESS".into()),
        Some("server") => Role::Server(
            at.iter().map(|host| Ok((address(host)?, port).into())).collect::<Result<_, lexopt::Error>>()?,
        ),
        Some("client") if paths.is_empty() => return Err("a client needs --path LOCAL,REMOTE".into()),
        Some("client") => Role::Client(paths.iter().map(|text| path(text, port)).collect::<Result<_, _>>()?),
        Some(other) => return Err(wrong("the first word", other, "server or client")),
        None => return Err("the first word is missing; write server or client".into()),
    };
    Ok(Some(Options {
        role,
        protocol,
        congestion,
        requests,
        window: u32::try_from(window).expect("it was checked"),
        path_timeout: (path_timeout > 0).then(|| Duration::from_millis(path_timeout)),
        timeout: Duration::from_secs(timeout),
    }))
}

fn wrong(name: &str, value: &str, right: &str) -> lexopt::Error {
    format!("{name} is '{value}'; write {right}").into()
}

fn number(parser: &mut lexopt::Parser, least: u64, most: u64) -> Result<u64, lexopt::Error> {
    let text = parser.value()?.string()?;
    match text.parse() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ => Err(format!("'{text}' is no whole number from {least} to {most}").into()),
    }
}

fn path(text: &str, port: u16) -> Result<PathSpec, lexopt::Error> {
    let (local, remote) = text.split_once(',').ok_or_else(|| wrong("--path", text, "LOCAL,REMOTE"))?;
    Ok(PathSpec { local: address(local)?, remote: (address(remote)?, port).into() })
}

/// Return the first IPv4 or IPv6 address of a name.
fn address(host: &str) -> Result<IpAddr, lexopt::Error> {
    if let Ok(ip) = host.parse() {
        return Ok(ip);
    }
    let found = (host, 0).to_socket_addrs().ok().and_then(|mut all| all.next());
    found.map(|all| all.ip()).ok_or_else(|| format!("'{host}' is no address and no known name").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<Options>, String> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn a_client_has_one_entry_for_each_path() {
        let options =
            parsed("client --port 5 --path 10.0.1.1,10.0.1.2 --path 10.0.2.1,10.0.2.2 --requests 3");
        let options = options.unwrap().unwrap();
        let expected = ["10.0.1", "10.0.2"].map(|net| PathSpec {
            local: format!("{net}.1").parse().unwrap(),
            remote: format!("{net}.2:5").parse().unwrap(),
        });
        assert_eq!(options.role, Role::Client(expected.to_vec()));
        assert_eq!(options.requests.count, 3);
        assert_eq!(options.path_timeout, Some(Duration::from_secs(1)));
    }

    #[test]
    fn no_path_timeout_is_zero() {
        let options = parsed("server --at ::1 --path-timeout 0").unwrap().unwrap();
        assert_eq!(options.path_timeout, None);
        assert_eq!(options.role, Role::Server(vec!["[::1]:4433".parse().unwrap()]));
    }

    #[test]
    fn help_is_no_error() {
        assert_eq!(parsed("client --help"), Ok(None));
    }

    #[test]
    fn a_mistake_names_the_value_and_what_is_right() {
        for (line, words) in [
            ("", "the first word is missing"),
            ("sever", "the first word is 'sever'; write server or client"),
            ("server", "a server needs --at"),
            ("client", "a client needs --path"),
            ("client --path 10.0.0.1", "--path is '10.0.0.1'; write LOCAL,REMOTE"),
            ("client --path 10.0.0.1,nowhere.invalid", "'nowhere.invalid' is no address"),
            ("client --congestion vegas", "--congestion is 'vegas'; write cubic, newreno or bbr3"),
            ("client --protocol sctp", "write quic, mpquic or tls"),
            ("client --requests 0", "'0' is no whole number from 1"),
            ("client --receive -5", "'-5' is no whole number"),
            ("client --window 9999999999", "is no whole number from 16384"),
            ("client --frobnicate", "--frobnicate"),
        ] {
            let message = parsed(line).unwrap_err();
            assert!(message.contains(words), "{line}: {message}");
        }
    }
}
