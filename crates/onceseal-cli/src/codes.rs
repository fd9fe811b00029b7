//! Every code of an error that is not the core's, with when the same command
//! may succeed and what it means. The page of codes is made of these lists, so
//! this file names nothing else of the program.

/// A code, when the same command may succeed, and what it means.
pub(crate) type Entry = (&'static str, &'static str, &'static str);

/// Codes of this program.
pub(crate) const PROGRAM: &[Entry] = &[
    ("usage", "never", "the command line cannot be understood; `--help` shows how the command is used"),
    (
        "outcome_unrecorded",
        "after_resolution",
        "the command ran and how it ended is not recorded; look at the effect, and resolve it once its lease has ended",
    ),
    ("fence_differs", "never", "`--fence` names another attempt than the newest; look at the effect again"),
    (
        "not_approved",
        "never",
        "the person at the terminal did not say yes; nothing was approved, and the request stays",
    ),
    (
        "lease_lost",
        "later",
        "the lease was lost while the program ran, and the program was stopped; somebody else may hold the resource",
    ),
    ("plan_invalid", "never", "the plan of a run is malformed; the message says where"),
    ("work_place", "never", "the files that a task's program reads and writes cannot be made"),
    ("lease_unused", "never", "the program that was to run under a lease could not be started"),
    ("receipt_unknown", "never", "there is no receipt with this id"),
    ("already_initialised", "never", "this directory is a project and has a policy"),
    ("config_unwritable", "never", "the policy to begin with cannot be written"),
    ("input_failed", "never", "the answer cannot be read from the terminal"),
    ("output_failed", "never", "standard output, or the file that was named for it, cannot be written"),
    ("output_exists", "never", "something stands where a file would be made; nothing was done"),
    (
        "output_closed",
        "never",
        "standard output was closed before all was written; nothing is printed of it, and the exit status is 141",
    ),
    ("no_randomness", "never", "the system gives no random numbers, so no id can be made"),
    ("runtime_failed", "never", "the system gives no event queue or threads"),
    ("case_unreadable", "never", "the case file cannot be read"),
    ("case_invalid", "never", "the case file is not in form; the message says where"),
    ("sim_failed", "never", "the ledger of `onceseal sim` cannot be used"),
    ("bench_place", "never", "the place for the measurement cannot be used"),
    ("bench_process", "never", "a process of the measurement did not end well"),
    ("bench_caller", "never", "a caller of the measurement did not end well"),
    (
        "not_moved",
        "never",
        "the audit of what was moved to the server found something, so the file stays the store; audit the file",
    ),
    (
        "store_missing",
        "never",
        "there is no store to audit: nothing was recorded here, or the project or the address is another one",
    ),
    ("bench_not_clean", "never", "the audit after the measurement found something"),
];

/// Codes of the engine.
pub(crate) const ENGINE: &[Entry] = &[
    (
        "approval_needed",
        "after_approval",
        "a person must answer first; the action waits, and the same command goes on with it",
    ),
    ("wait_timeout", "after_approval", "nobody answered within the wait; the request stays until it expires"),
    (
        "outcome_unknown",
        "after_resolution",
        "the command ended without saying whether it acted; look at the remote, then resolve it",
    ),
    (
        "invalid_argument",
        "never",
        "the call cannot be an action: a name or an argument is missing, too long or of a form that is not taken",
    ),
    ("config_missing", "never", "there is no onceseal.yaml here or above; `onceseal init` writes one"),
    ("config_unreadable", "never", "what stands at the configuration's name cannot be read as a file"),
    ("config_too_large", "never", "the configuration is larger than 1 MiB"),
    ("config_blank", "never", "ONCESEAL_CONFIG is set but blank; unset it or name a file"),
    ("policy_invalid", "never", "the policy is malformed; the message says where"),
    (
        "tool_invalid",
        "never",
        "a tool is declared in a way that cannot be; the message names it and what is wrong",
    ),
    ("definition_invalid", "never", "a run definition is malformed; the message names it and what is wrong"),
    (
        "kind_unknown",
        "never",
        "there is no run definition of this kind; `onceseal runs definitions` lists them",
    ),
    ("setting_invalid", "never", "a setting is malformed or not known"),
];

/// Codes of the store: where the state lies, and what was seen of it.
pub(crate) const STORE: &[Entry] = &[
    (
        "state_setting",
        "never",
        "ONCESEAL_STATE or `mark` is no absolute path with a name of its own; set one, or unset it",
    ),
    (
        "state_home_missing",
        "never",
        "there is no home for the state; set HOME, XDG_STATE_HOME or ONCESEAL_STATE",
    ),
    ("state_parent_missing", "never", "the directory that should hold the state directory does not exist"),
    (
        "state_symlink",
        "never",
        "a symbolic link stands in the state path; put the real directory or file there",
    ),
    (
        "state_wrong_kind",
        "never",
        "the state path holds something that is no directory, or no regular file; move it away",
    ),
    ("state_foreign_owner", "never", "the state belongs to another account"),
    ("state_not_private", "never", "other accounts can reach the state; the message says what to chmod"),
    ("state_hard_link", "never", "a state file has more than one name; keep one and remove the others"),
    ("state_ancestor_owner", "never", "a directory or link above the state belongs to another account"),
    ("state_ancestor_writable", "never", "anybody can write a directory above the state"),
    (
        "state_ancestor_group",
        "never",
        "a group can write a directory above the state; chmod it, or set `trust_group`",
    ),
    (
        "state_inside_project",
        "never",
        "the state would lie inside the project; choose a directory outside it",
    ),
    ("state_filesystem", "never", "the state would lie on a file system whose locks cannot be relied on"),
    (
        "state_missing",
        "never",
        "the project's state is not here; go back to the account, HOME or ONCESEAL_STATE it was made under, restore it, or begin again with `onceseal project new`",
    ),
    (
        "state_moved",
        "never",
        "the project's store is on a server; set `store` in onceseal.yaml, or ONCESEAL_STORE, to its address",
    ),
    ("state_io", "never", "the operating system refused something that the state needs"),
    ("project_unavailable", "never", "the working directory is gone or is no directory"),
    ("project_missing", "never", "there is no project here or above; `onceseal init` makes one"),
    (
        "project_in_use",
        "never",
        "a new id would leave behind state that is in use; pass --forget if it may be forgotten",
    ),
    ("project_unreadable", "never", "the project file is not what `onceseal init` writes"),
    (
        "project_copied",
        "never",
        "this project's id is in use at another path; make this copy new, or adopt it",
    ),
    (
        "project_roots_unreadable",
        "never",
        "the record of known projects cannot be read; move it away to have projects recorded anew",
    ),
    (
        "project_git_exclude",
        "never",
        "git's exclude file cannot be extended; add the line `.onceseal/` yourself",
    ),
    ("mark_corrupt", "never", "the mark of what was seen is not one; find out what changed it"),
    (
        "mark_inside_state",
        "never",
        "the mark would lie inside the state directory; set `mark` to a directory outside it",
    ),
];
