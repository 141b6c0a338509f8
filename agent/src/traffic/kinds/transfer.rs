//! Transfers of a number of bytes, or of a real file, which both sides hash.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;

use rustix::net::{RecvFlags, SendFlags, recv, send};
use sha2::{Digest, Sha256};

use super::Kind;
use crate::clock;
use crate::error::{Attempt, Error, describe};
use crate::job::input_path;
use crate::plan::{self, Flow, Transfer};
use crate::traffic::side::{FlowSide, retried};

const CHUNK_BYTES: usize = 4 << 20;

impl Kind for Transfer {
    fn check(&self, _: &[Flow]) -> Result<(), &'static str> {
        match &self.file {
            Some(file) if file.bytes != self.bytes => Err("its size differs from that of its file"),
            _ if self.bytes == 0 => Err("a transfer needs at least one byte"),
            _ => Ok(()),
        }
    }

    /// Check that the file exists and has the planned size.
    fn prepare(&self) -> crate::error::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let (name, path) = (&file.name, input_path(file)?);
        let size = path.metadata().attempt(|| format!("looking for input/{name}"))?.len();
        if size == file.bytes {
            return Ok(());
        }
        Err(Error::new(format!("input/{name} has {size} bytes; the plan has {}", file.bytes)))
    }

    /// Send the bytes, with a pause after the first ones if the plan has one.
    fn send(&self, side: &mut FlowSide<'_>) -> Result<(), String> {
        if let Some(file) = &self.file {
            return send_file(file, side);
        }
        if let Some(first) = &self.first {
            side.send(first.bytes.min(self.bytes))?;
            clock::sleep_until(clock::trial_us() + first.pause_us);
        }
        side.send(self.bytes - side.bytes)
    }

    fn receive(&self, side: &mut FlowSide<'_>) -> Result<Option<i64>, String> {
        match &self.file {
            Some(file) => receive_file(file, side),
            None => side.receive_anything(Some(self.bytes)),
        }
    }
}

fn send_file(file: &plan::File, side: &mut FlowSide<'_>) -> Result<(), String> {
    let name = &file.name;
    let mut source = input_path(file)
        .and_then(|path| File::open(path).attempt(|| format!("opening input/{name}")))
        .map_err(|error| error.to_string())?;
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut hash = Sha256::new();
    loop {
        let count = source.read(&mut chunk).map_err(|error| format!("reading input/{name}: {error}"))?;
        if count == 0 {
            break;
        }
        hash.update(&chunk[..count]);
        let mut rest = &chunk[..count];
        while !rest.is_empty() {
            let count = retried(|| send(side.socket, rest, SendFlags::NOSIGNAL)).map_err(describe)?;
            side.bytes += count as u64;
            rest = &rest[count..];
        }
    }
    let sha256 = hex(&hash.finalize());
    if sha256 != file.sha256 {
        return Err(format!("input/{name} has SHA-256 {sha256}; the plan has {}", file.sha256));
    }
    side.flow.progress().sent_sha256 = Some(sha256);
    Ok(())
}

/// Receive until the stream ends. The hash of a partial transfer is meaningless, so it is not recorded.
fn receive_file(file: &plan::File, side: &mut FlowSide<'_>) -> Result<Option<i64>, String> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut hash = Sha256::new();
    let mut last_us = None;
    loop {
        // Never ask for more than the rest, so that the read of the last byte returns when it
        // arrives.
        let rest = usize::try_from(file.bytes.saturating_sub(side.bytes)).unwrap_or(usize::MAX);
        let ask = if side.bytes == 0 { 1 } else { rest.clamp(1, CHUNK_BYTES) };
        let (_, count) =
            retried(|| recv(side.socket, &mut chunk[..ask], RecvFlags::WAITALL)).map_err(describe)?;
        if count == 0 {
            side.flow.progress().received_sha256 = last_us.map(|_| hex(&hash.finalize()));
            return Ok(last_us);
        }
        side.add_received(count as u64);
        if side.bytes == file.bytes {
            last_us = Some(clock::trial_us());
        }
        hash.update(&chunk[..count]);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_written_as_python_writes_it() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hex(&Sha256::new().finalize()), empty);
    }
}
