//! A service that runs already, as sentences call it.

use std::path::Path;

use burst_client::ClientError;

/// What went wrong with the service at this socket: sentences that do not name it get its name.
pub(crate) fn at(socket: &Path, error: ClientError) -> anyhow::Error {
    let is_named = matches!(
        error,
        ClientError::NobodyListens { .. }
            | ClientError::MayNotConnect { .. }
            | ClientError::Connect { .. }
    );
    let error = anyhow::Error::from(error);
    if is_named { error } else { error.context(format!("the service at {}", socket.display())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::error_text;

    #[test]
    fn a_service_is_named_once() {
        let socket = Path::new("/tmp/s");
        let said = error_text(&at(socket, ClientError::NoGreeting));
        assert_eq!(said, "the service at /tmp/s: the service does not answer");
        let nobody = ClientError::NobodyListens { path: socket.into() };
        assert_eq!(error_text(&at(socket, nobody)), "no service listens at /tmp/s");
    }
}
