//! The namespaces of the sandbox.

use std::fs;

use rustix::thread::UnshareFlags;

use crate::failure::{Attempt, Failure};
use crate::layer::Layer;
use crate::layers::Layers;
use crate::sys;

/// Move this process into new namespaces. The PID namespace applies to its future children.
pub fn enter(layers: &mut Layers<'_>) -> Result<(), Failure> {
    layers.add(Layer::UserNamespace, enter_user_namespace)?;
    for (layer, flag, name) in [
        (Layer::MinimalRoot, UnshareFlags::NEWNS, "mount"),
        (Layer::PidNamespace, UnshareFlags::NEWPID, "PID"),
        (Layer::NetworkNamespace, UnshareFlags::NEWNET, "network"),
        (Layer::IpcNamespace, UnshareFlags::NEWIPC, "IPC"),
        (Layer::UtsNamespace, UnshareFlags::NEWUTS, "UTS"),
        (Layer::CgroupNamespace, UnshareFlags::NEWCGROUP, "cgroup"),
    ] {
        layers.add(layer, || sys::unshare(flag).attempt(|| format!("creating a {name} namespace")))?;
    }
    Ok(())
}

/// Create a user namespace that maps every ID to itself: all IDs for root, otherwise only the
/// user's own.
fn enter_user_namespace() -> Result<(), Failure> {
    let context = || "creating a user namespace";
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid().as_raw());
    if !user.is_root() {
        let user = user.as_raw();
        sys::unshare(UnshareFlags::NEWUSER).attempt(context)?;
        fs::write("/proc/self/setgroups", "deny").attempt(context)?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1\n")).attempt(context)?;
        return fs::write("/proc/self/gid_map", format!("{group} {group} 1\n")).attempt(context);
    }
    let (users, groups) = (identity("/proc/self/uid_map")?, identity("/proc/self/gid_map")?);
    let writer = sys::fork_map_writer(&users, &groups).attempt(context)?;
    let unshared = sys::unshare(UnshareFlags::NEWUSER).attempt(context);
    writer.finish(unshared.is_ok()).attempt(|| "mapping the users of the user namespace")?;
    unshared
}

/// Return the map that maps every ID of the present namespace to itself.
fn identity(path: &str) -> Result<String, Failure> {
    let present = fs::read_to_string(path).attempt(|| format!("reading {path}"))?;
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let (first, count) = (words.next()?, words.nth(1)?);
        Some(format!("{first} {first} {count}\n"))
    };
    Ok(present.lines().filter_map(line).collect())
}
