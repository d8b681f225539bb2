//! What is said of devices and of files, right ones and wrong ones.

mod faults;
mod files;
mod fuzzing;
mod goldens;
mod support;
