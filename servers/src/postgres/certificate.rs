//! A certificate for a server on this host, and the authority that signed it.

use std::process::Command;

use crate::daemon::Daemon;
use crate::program::{need, run};

/// The authority's certificate, in the server's data.
pub(super) const AUTHORITY: &str = "authority.pem";
/// The server's certificate.
pub(super) const CERTIFICATE: &str = "server.pem";
/// The server's key.
pub(super) const KEY: &str = "server.key";

/// Writes them into the data of a server.
pub(super) fn issue(daemon: &Daemon) {
    let data = daemon.directory().join("data");
    // The system's configuration would add extensions of its own.
    let configuration = daemon
        .write("openssl.conf", "[req]\ndistinguished_name = name\nprompt = no\n[name]\nCN = localhost\n");
    let request = |key: &str, certificate: &str, arguments: &[&str]| {
        let mut command = Command::new(need("openssl"));
        command.current_dir(&data).args(["req", "-x509", "-nodes", "-days", "3650", "-config"]);
        command.arg(&configuration).args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
        command.args(["-keyout", key, "-out", certificate]).args(arguments);
        run(&mut command);
    };
    let authority = ["-subj", "/CN=An authority of tests", "-addext", "basicConstraints=critical,CA:TRUE"];
    request("authority.key", AUTHORITY, &authority);
    let names = "subjectAltName=DNS:localhost,IP:127.0.0.1";
    let signed = ["-CA", AUTHORITY, "-CAkey", "authority.key", "-addext", "basicConstraints=CA:FALSE"];
    request(KEY, CERTIFICATE, &[&signed[..], &["-addext", names]].concat());
    // PostgreSQL refuses a key that another may read.
    for name in [KEY, CERTIFICATE] {
        let text = std::fs::read_to_string(data.join(name)).expect("what openssl wrote");
        daemon.write(&format!("data/{name}"), &text);
    }
}
