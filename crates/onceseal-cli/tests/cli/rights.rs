//! A role that does not own the schema, and what it has to be granted.

use onceseal_servers::{Database, server};
use serde_json::{Value, json};

use crate::base::{Project, Ran, ran, refund};
use crate::server::doctor;

/// A role that may connect and no more; gone with the value.
struct Role<'a> {
    database: &'a Database,
    name: String,
}

impl Role<'_> {
    fn new(database: &Database) -> Role<'_> {
        let name = format!("acts_on_{}", database.name());
        database.sql(&format!("CREATE ROLE {name} LOGIN PASSWORD 'p'"));
        Role { database, name }
    }

    fn address(&self) -> String {
        let url = self.database.url();
        let (_, host) = url.rsplit_once('@').expect("a host");
        format!("postgres://{}:p@{host}", self.name)
    }
}

impl Drop for Role<'_> {
    fn drop(&mut self) {
        self.database.sql(&format!("DROP OWNED BY {0}; DROP ROLE {0}", self.name));
    }
}

fn act(project: &Project, address: &str, payment: &str) -> Ran {
    let mut command = project.command(&refund(payment, 1, &["--json"], "true").each());
    ran(command.env("ONCESEAL_STORE", address).output().expect("a run"))
}

/// What `doctor` says of the schema, and the statements that it names.
fn schema(project: &Project, address: &str) -> (Value, Vec<String>) {
    let (_, mut checks) = doctor(project, "", address);
    let check = checks.remove("schema").expect("a check");
    let next = check["next"].as_str().unwrap_or_default();
    let (_, statements) = next.split_once(" run: ").unwrap_or_default();
    let statements = statements.split("; ").filter(|statement| !statement.is_empty());
    let statements = statements.map(str::to_owned).collect();
    (check["status"].clone(), statements)
}

#[test]
fn doctor_names_what_a_role_lacks_to_act_and_with_that_it_acts() {
    let readable = "GRANT USAGE ON SCHEMA onceseal TO $; GRANT SELECT ON ALL TABLES IN SCHEMA onceseal TO $";
    // Functions that not everybody may call, as where somebody has made a server tight.
    let tight = "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA onceseal FROM PUBLIC";
    for prepared in ["SELECT 1", readable, tight] {
        let database = server().new_database();
        let (owner, other) = (Project::new(), Project::new());
        assert_eq!(act(&owner, &database.url(), "p1").code, 0);
        assert_eq!(schema(&owner, &database.url()), (json!("ok"), Vec::new()));
        let role = Role::new(&database);
        database.sql(&prepared.replace('$', &role.name));
        let (status, grants) = schema(&other, &role.address());
        assert_eq!(status, "fail", "{prepared}");
        let refused = act(&other, &role.address(), "p2");
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.all().contains("`onceseal doctor` says what to grant"), "{refused:?}");
        grants.iter().for_each(|grant| drop(database.sql(grant)));
        assert_eq!(schema(&other, &role.address()), (json!("ok"), Vec::new()), "{prepared}: {grants:#?}");
        let acted = act(&other, &role.address(), "p2");
        assert_eq!(acted.code, 0, "{prepared}: {acted:?}");
        assert_eq!(act(&other, &role.address(), "p1").error()["code"], "duplicate");
    }
}

#[test]
fn each_right_that_is_taken_back_is_named_and_no_other() {
    let database = server().new_database();
    let project = Project::new();
    assert_eq!(act(&project, &database.url(), "p1").code, 0);
    let role = Role::new(&database);
    let (_, grants) = schema(&project, &role.address());
    grants.iter().for_each(|grant| drop(database.sql(grant)));
    for (right, on) in [
        ("INSERT", "TABLE onceseal.events"),
        ("UPDATE", "TABLE onceseal.streams"),
        ("DELETE", "TABLE onceseal.unsequenced"),
        ("SELECT", "TABLE onceseal.sweeps"),
        ("USAGE", "SEQUENCE onceseal.stream_blocks"),
    ] {
        database.sql(&format!("REVOKE {right} ON {on} FROM {}", role.name));
        let grant = format!("GRANT {right} ON {on} TO {}", role.name);
        assert_eq!(schema(&project, &role.address()), (json!("fail"), vec![grant.clone()]));
        database.sql(&grant);
    }
    // Who has to make its tenant first needs one right more.
    database.sql(&format!("REVOKE INSERT ON onceseal.tenants FROM {}", role.name));
    assert_eq!(schema(&project, &role.address()), (json!("ok"), Vec::new()));
    database.sql("DELETE FROM onceseal.tenants");
    let grant = format!("GRANT INSERT ON TABLE onceseal.tenants TO {}", role.name);
    assert_eq!(schema(&project, &role.address()), (json!("fail"), vec![grant]));
}
