//! How a person names what a lease is on. What only looks like a run, a path or the
//! like is refused: as a name it would exclude nobody from what was meant.

use crate::id::{RootId, RunId};
use crate::lease::Resource;
use crate::limits;
use crate::run::name;

/// What somebody named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// A resource.
    Resource(Resource),
    /// A run by its kind and change, `KIND/CHANGE`, or a task of it,
    /// `KIND/CHANGE/task/NAME`.
    OfChange {
        /// The kind.
        kind: String,
        /// The change.
        change: String,
        /// The task, if it is one.
        task: Option<String>,
    },
}

/// Why a text names no resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misnamed {
    /// It begins as a run does.
    #[error("a run is run_ and 32 lower-case hex digits, or KIND/CHANGE; a task of it, RUN/task/NAME")]
    Run,
    /// It begins as a path does.
    #[error("a path of this project is path/ and its steps, without `.`, `..` and empty ones")]
    Path,
    /// It begins as a directory on a host does.
    #[error("this project's directory on a host is workspace@HOST")]
    Workspace,
    /// It begins as something of a project does.
    #[error("what is of a project is root/ROOT/path/… or root/ROOT/workspace@HOST")]
    Root,
    /// It is a name that cannot be.
    #[error("a name has 1 to 1024 bytes, no control characters, and no space at its ends")]
    Name,
    /// It is in steps, and nothing begins so.
    #[error("with a `/` it is run/…, path/…, root/…, name/… or KIND/CHANGE")]
    Steps,
}

impl Named {
    /// Reads what a person typed who is in this project.
    ///
    /// # Errors
    /// Why it names nothing.
    pub fn read(text: &str, root: RootId) -> Result<Named, Misnamed> {
        if let Some(resource) = Resource::parse(text) {
            return Ok(Named::Resource(resource));
        }
        let (first, rest) = text.split_once('/').map_or((text, None), |(first, rest)| (first, Some(rest)));
        if let Some(run) = RunId::parse(first) {
            let resource = match rest {
                None => Some(Resource::Run(run)),
                Some(rest) => Resource::parse(&format!("run/{run}/{rest}")),
            };
            return resource.map(Named::Resource).ok_or(Misnamed::Run);
        }
        let looks = first.to_ascii_lowercase();
        match () {
            () if looks == "run" || looks.starts_with(RunId::PREFIX) => Err(Misnamed::Run),
            () if looks == "root" || looks.starts_with(RootId::PREFIX) => Err(Misnamed::Root),
            () if looks == "path" || looks == "workspace" || looks.starts_with("workspace@") => {
                let wrong = if looks == "path" { Misnamed::Path } else { Misnamed::Workspace };
                Resource::parse(&format!("root/{root}/{text}")).map(Named::Resource).ok_or(wrong)
            }
            () if looks == "name" => Err(Misnamed::Name),
            () => match rest {
                Some(rest) => of_change(first, rest).ok_or(Misnamed::Steps),
                None if text.trim() == text && limits::is_long_name(text) => {
                    Ok(Named::Resource(Resource::Name(text.to_owned())))
                }
                None => Err(Misnamed::Name),
            },
        }
    }
}

fn of_change(kind: &str, rest: &str) -> Option<Named> {
    let (change, task) = match rest.split_once("/task/") {
        Some((change, task)) => (change, Some(task)),
        None => (rest, None),
    };
    let fits = name::is_plain(kind) && name::is_plain(change) && task.is_none_or(name::is_request);
    fits.then(|| Named::OfChange {
        kind: kind.to_owned(),
        change: change.to_owned(),
        task: task.map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunId = RunId([1; 16]);
    const ROOT: RootId = RootId([2; 16]);

    fn read(text: &str) -> Result<String, Misnamed> {
        Named::read(text, ROOT).map(|named| match named {
            Named::Resource(resource) => resource.to_string(),
            Named::OfChange { kind, change, task } => format!("{kind} {change} {task:?}"),
        })
    }

    #[test]
    fn what_is_typed_is_the_resource_that_was_meant() {
        for (text, resource) in [
            ("deploy", "name/deploy".to_owned()),
            ("runway", "name/runway".to_owned()),
            ("name/run_1", "name/run_1".to_owned()),
            (&RUN.to_string(), format!("run/{RUN}")),
            (&format!("run/{RUN}"), format!("run/{RUN}")),
            (&format!("{RUN}/task/t"), format!("run/{RUN}/task/t")),
            ("path/src/lib.rs", format!("root/{ROOT}/path/src/lib.rs")),
            ("workspace@host", format!("root/{ROOT}/workspace@host")),
            ("simple/fix-1", "simple fix-1 None".to_owned()),
            ("simple/fix-1/task/T.1", "simple fix-1 Some(\"T.1\")".to_owned()),
        ] {
            assert_eq!(read(text), Ok(resource), "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_something_else_is_no_name() {
        let run = RUN.to_string();
        for (text, why) in [
            (&run[..run.len() - 1], Misnamed::Run),
            (&run.to_uppercase(), Misnamed::Run),
            (&format!("{run}g"), Misnamed::Run),
            (&format!("{run}/task/"), Misnamed::Run),
            ("run", Misnamed::Run),
            ("run/fix-1", Misnamed::Run),
            ("root", Misnamed::Root),
            ("root_1", Misnamed::Root),
            ("path", Misnamed::Path),
            ("PATH/src", Misnamed::Path),
            ("path/../src", Misnamed::Path),
            ("workspace", Misnamed::Workspace),
            ("workspace@", Misnamed::Workspace),
            ("Workspace@host", Misnamed::Workspace),
            ("name/", Misnamed::Name),
            ("", Misnamed::Name),
            ("deploy ", Misnamed::Name),
            ("a\nb", Misnamed::Name),
            ("a/b/c", Misnamed::Steps),
            ("simple/Fix", Misnamed::Steps),
        ] {
            assert_eq!(read(text), Err(why), "{text:?}");
        }
    }
}
