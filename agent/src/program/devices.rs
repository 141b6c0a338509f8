//! Devices that a program needs and the guest lacks, as far as the program's own output shows.

use std::path::Path;

use super::root::ROOT;

const DEVICES: &str = "/dev/";
/// Names below /dev that are no devices: descriptors, shared memory, terminals, and the network
/// redirections of bash.
const OTHERS: [&str; 5] = ["/dev/fd/", "/dev/shm/", "/dev/pts/", "/dev/tcp/", "/dev/udp/"];

/// Return the devices that `texts` (a program's arguments and its last output) mention and the
/// guest lacks.
pub fn missing<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut missing: Vec<String> = texts.into_iter().flat_map(named).collect();
    missing.sort();
    missing.dedup();
    missing.retain(|device| !Path::new(&format!("{ROOT}{device}")).exists());
    missing
}

/// Return every path below /dev in a text.
fn named(text: &str) -> Vec<String> {
    let in_a_path = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
    let starts = text.match_indices(DEVICES).map(|(at, _)| at);
    let alone = starts.filter(|at| !text[..*at].ends_with(in_a_path));
    alone
        .map(|at| {
            let end = text[at..].find(|c| !in_a_path(c)).map_or(text.len(), |length| at + length);
            text[at..end].trim_end_matches(['/', '.', '-']).to_owned()
        })
        .filter(|path| path.len() >= DEVICES.len() && !OTHERS.iter().any(|other| path.starts_with(other)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn the_output_of_a_program_shows_the_paths_of_devices() {
        let text = "cat: /dev/kvm: No such file\nopening '/dev/net/tap0'. /dev/ppp.\n/dev/ /sys/dev/block a/dev/b\n\
             bash: /dev/tcp/h2/80: refused";
        assert_eq!(named(text), ["/dev/kvm", "/dev/net/tap0", "/dev/ppp"]);
    }
}
