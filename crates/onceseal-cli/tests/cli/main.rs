//! The program as people and scripts use it: the real binary, in directories
//! of its own.

mod acceptance;
mod audit;
mod base;
mod bench;
mod cases;
mod deliveries;
mod demo;
mod exec;
mod files;
mod handoffs;
mod help;
mod history;
mod json;
mod leading;
mod lease;
mod lists;
mod operating;
mod operations;
mod operator;
mod policy;
mod project;
mod rights;
mod runs;
mod secrets;
mod seeing_through;
mod server;
mod shown;
mod tasks;
mod terminal;
mod vectors;
mod workers;
