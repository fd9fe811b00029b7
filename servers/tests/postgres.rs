//! PostgreSQL as tests get it.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fs, thread};

use onceseal_servers::{Postgres, Shutdown, server, until};

/// How many processes work in a directory or its data.
fn working_in(directory: &Path) -> usize {
    let data = directory.join("data");
    let places = fs::read_dir("/proc").expect("/proc").flatten();
    places
        .filter_map(|process| fs::read_link(process.path().join("cwd")).ok())
        .filter(|place| place == directory || *place == data)
        .count()
}

#[test]
fn it_is_durable_on_loopback_only_and_orders_texts_as_people_do() {
    let server = Postgres::with(&[("max_connections", "37"), ("application_name", "it's")]).start();
    let show = |name: &str| server.sql("postgres", &format!("SHOW {name}"));
    assert_eq!((show("fsync"), show("full_page_writes")), ("on".to_owned(), "on".to_owned()));
    assert_eq!(show("synchronous_commit"), "on");
    assert_eq!(show("listen_addresses"), "127.0.0.1");
    assert_eq!(show("server_encoding"), "UTF8");
    assert_eq!((show("max_connections"), show("port")), ("37".to_owned(), server.port().to_string()));
    assert_eq!(server.sql("postgres", "SELECT 'a' < 'B', 'a' < 'B' COLLATE \"C\""), "t|f");
}

#[test]
fn a_password_is_needed_by_tcp_and_every_database_is_new() {
    let server = Postgres::start();
    let (first, second) = (server.new_database(), server.new_database());
    assert_ne!(first, second);
    let psql = |url: &str| {
        let mut psql = Command::new("psql");
        psql.args(["-X", "-w", "-At", "-c", "SELECT 1", url]).env_remove("PGPASSWORD").output().expect("psql")
    };
    assert_eq!(psql(&first).stdout, b"1\n");
    let guessed = first.replace(server.password(), "guessed");
    let said = String::from_utf8(psql(&guessed).stderr).expect("text");
    assert!(said.contains("password authentication failed"), "{said}");
}

#[test]
fn it_keeps_what_was_committed_through_every_end() {
    let server = Postgres::start();
    let port = server.port();
    server.sql("postgres", "CREATE TABLE kept (n int)");
    let restarts: [&dyn Fn(); 4] = [
        &|| server.restart(Shutdown::Smart),
        &|| server.restart(Shutdown::Fast),
        &|| server.restart(Shutdown::Immediate),
        &|| {
            server.kill();
            assert_eq!(working_in(server.directory()), 0);
            server.start_again();
        },
    ];
    for (count, restart) in restarts.iter().enumerate() {
        server.sql("postgres", "INSERT INTO kept VALUES (1)");
        restart();
        assert_eq!(server.port(), port);
        assert_eq!(server.sql("postgres", "SELECT count(*) FROM kept"), (count + 1).to_string());
    }
    assert!(server.log().contains("was not properly shut down"), "{}", server.log());
}

#[test]
fn sessions_are_ended_by_database() {
    let server = Postgres::start();
    let database = server.new_database();
    let name = database.rsplit('/').next().expect("a name");
    thread::scope(|scope| {
        let session = scope.spawn(|| {
            Command::new("psql").args(["-X", "-c", "SELECT pg_sleep(600)", &database]).output().expect("psql")
        });
        let sleeping = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'";
        until("the session", || (server.sql("postgres", sleeping) == "1").then_some(()));
        server.terminate_backends(name);
        let said = String::from_utf8(session.join().expect("no panic").stderr).expect("text");
        assert!(said.contains("terminating connection"), "{said}");
    });
}

#[test]
fn settings_are_taken_while_it_runs() {
    let server = Postgres::start();
    server.set("statement_timeout", "7s");
    assert_eq!(server.sql("postgres", "SHOW statement_timeout"), "7s");
    server.set("application_name", "it's");
    assert_eq!(server.sql("postgres", "SHOW server_version_num").len(), 6);
}

#[test]
fn a_frozen_server_answers_when_it_is_thawed() {
    let server = Postgres::start();
    server.freeze();
    let (say, answered) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| say.send(server.sql("postgres", "SELECT 7")).expect("heard"));
        let early = answered.recv_timeout(Duration::from_millis(200));
        server.thaw();
        assert_eq!(early, Err(mpsc::RecvTimeoutError::Timeout));
        assert_eq!(answered.recv_timeout(Duration::from_secs(20)).as_deref(), Ok("7"));
    });
    server.freeze();
    let (directory, began) = (server.directory().to_owned(), Instant::now());
    drop(server);
    assert!(began.elapsed() < Duration::from_secs(5), "it ends though it was frozen");
    assert!(!directory.exists());
}

#[test]
fn nothing_is_left_of_it() {
    let server = Postgres::with(&[]).on_disk().start();
    let directory = server.directory().to_owned();
    assert!(directory.starts_with("/var/tmp") && working_in(&directory) > 1);
    drop(server);
    assert!(!directory.exists());
    assert_eq!(working_in(&directory), 0);
}

#[test]
fn servers_are_copies_unless_they_are_made_afresh() {
    let identity =
        |server: &Postgres| server.sql("postgres", "SELECT system_identifier FROM pg_control_system()");
    let (first, second, fresh) = (Postgres::start(), Postgres::start(), Postgres::with(&[]).afresh().start());
    assert_eq!(identity(&first), identity(&second));
    assert_ne!(identity(&first), identity(&fresh));
}

#[test]
fn a_synchronous_standby_has_what_was_committed_and_takes_over() {
    let primary = Postgres::start();
    let standby = primary.standby(true);
    primary.sql("postgres", "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)");
    assert_eq!(standby.sql("postgres", "SHOW transaction_read_only"), "on");
    standby.freeze();
    thread::scope(|scope| {
        let (say, committed) = mpsc::channel();
        let primary = &primary;
        scope.spawn(move || say.send(primary.sql("postgres", "INSERT INTO kept VALUES (2)")).expect("heard"));
        let early = committed.recv_timeout(Duration::from_millis(200));
        standby.thaw();
        assert_eq!(early, Err(mpsc::RecvTimeoutError::Timeout), "no commit without the standby");
        committed.recv_timeout(Duration::from_secs(20)).expect("committed");
    });
    primary.kill();
    standby.promote();
    standby.sql("postgres", "INSERT INTO kept VALUES (3)");
    assert_eq!(standby.sql("postgres", "SELECT count(*) FROM kept"), "3");
    assert_ne!(standby.port(), primary.port());
}

#[test]
fn an_asynchronous_standby_catches_up_and_is_missed_by_nobody() {
    let primary = Postgres::start();
    let standby = primary.standby(false);
    standby.stop(Shutdown::Fast);
    primary.sql("postgres", "CREATE TABLE kept (n int)");
    standby.start_again();
    let there = "SELECT count(*) FROM pg_class WHERE relname = 'kept'";
    until("the table", || (standby.sql("postgres", there) == "1").then_some(()));
}

#[test]
fn tls_is_known_by_its_authority_and_may_be_required() {
    let connect = |server: &Postgres, options: &str| {
        let url = format!("{}?{options}", server.url("postgres"));
        let question = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        let output = Command::new("psql").args(["-X", "-At", "-c", question, &url]).output().expect("psql");
        String::from_utf8([output.stdout, output.stderr].concat()).expect("text")
    };
    let verified = |authority: &Path| format!("sslmode=verify-full&sslrootcert={}", authority.display());
    let (offered, required) = (Postgres::with(&[]).tls().start(), Postgres::with(&[]).tls_only().start());
    for server in [&offered, &required] {
        assert_eq!(connect(server, &verified(&server.authority())), "t\n");
    }
    let strange = connect(&offered, &verified(&required.authority()));
    assert!(strange.contains("certificate verify failed"), "{strange}");
    assert_eq!(connect(&offered, "sslmode=disable"), "f\n");
    let refused = connect(&required, "sslmode=disable");
    assert!(refused.contains("no pg_hba.conf entry"), "{refused}");
}

#[test]
fn the_shared_server_has_a_database_for_each() {
    let (first, second) = (server().new_database(), server().new_database());
    first.sql("CREATE TABLE own (n int)");
    assert_eq!(second.sql("SELECT count(*) FROM pg_class WHERE relname = 'own'"), "0");
    let name = first.name().to_owned();
    assert!(first.url().contains(&name));
    drop(first);
    let left = format!("SELECT count(*) FROM pg_database WHERE datname = '{name}'");
    assert_eq!(server().sql("postgres", &left), "0");
}

#[test]
fn servers_end_with_a_process_that_is_killed() {
    let program = env!("CARGO_BIN_EXE_with-postgres");
    let mut child = Command::new(program)
        .env_remove(onceseal_servers::SHARED)
        .env_remove(onceseal_servers::TEMPLATE)
        .args(["sh", "-c", "echo $ONCESEAL_TEST_POSTGRES $ONCESEAL_TEST_POSTGRES_TEMPLATE; exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("with-postgres");
    let mut said = std::io::BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut said, &mut line).expect("a line");
    let (url, template) = line.trim().split_once(' ').expect("both");
    let ask =
        || Command::new("psql").args(["-X", "-At", "-c", "SHOW data_directory", url]).output().expect("psql");
    let data = String::from_utf8(ask().stdout).expect("text");
    let directory = Path::new(data.trim()).parent().expect("its directory").to_owned();
    assert!(directory.is_dir() && Path::new(template).is_dir(), "{line}");
    // What it ran ends with our end of this pipe.
    let _stdin = child.stdin.take();
    child.kill().expect("killed");
    child.wait().expect("waited");
    until("the directories go", || (!directory.exists() && !Path::new(template).exists()).then_some(()));
    assert_eq!(working_in(&directory), 0);
}

#[test]
fn the_exit_code_is_that_of_the_command() {
    let with = |script: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_with-postgres"));
        command.args(["sh", "-c", script]).status().expect("with-postgres").code()
    };
    assert_eq!(with("exit 7"), Some(7));
    assert_eq!(with("test -n \"$ONCESEAL_TEST_POSTGRES\""), Some(0));
    assert_eq!(with("kill -KILL $$"), Some(1));
}
