//! Where things lie that are to be there again after a restart.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// The folder for them: `$STATE_DIRECTORY`, which systemd sets for a service, else `$XDG_STATE_HOME/burst`, else
/// `~/.local/state/burst`. `None` for a process without any of these.
pub(crate) fn path() -> Option<PathBuf> {
    chosen(|name| env::var_os(name))
}

fn chosen(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    // Of several, which are separated by colons, the first.
    let of_service = variable("STATE_DIRECTORY")
        .and_then(|list| env::split_paths(&list).next())
        .filter(|path| path.is_absolute());
    let of_user = || absolute("XDG_STATE_HOME").map(|state| state.join("burst"));
    let at_home = || absolute("HOME").map(|home| home.join(".local/state/burst"));
    of_service.or_else(of_user).or_else(at_home)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_has_its_own_and_a_user_one_at_home() {
        let with = |set: &[(&str, &str)]| {
            let value = |name: &str| set.iter().find(|(known, _)| *known == name);
            chosen(|name| value(name).map(|(_, value)| OsString::from(value)))
        };
        let (home, state) = (("HOME", "/home/a"), ("XDG_STATE_HOME", "/s"));
        let service = ("STATE_DIRECTORY", "/var/lib/burst:/var/lib/other");
        assert_eq!(with(&[home, state, service]), Some("/var/lib/burst".into()));
        assert_eq!(with(&[home, state]), Some("/s/burst".into()));
        assert_eq!(with(&[home]), Some("/home/a/.local/state/burst".into()));
        assert_eq!(with(&[home, ("XDG_STATE_HOME", "here")]), with(&[home]));
        assert_eq!(with(&[]), None);
    }
}
