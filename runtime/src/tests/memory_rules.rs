//! Memories: files, copies, and memories that were made for roles.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::sync::Arc;

use burst_hal::{HeapMemory, OperationType, ResultCode};

use super::support::*;
use crate::{Argument, Compilation, Execution, Memory, MemoryDesc, Registry};

use ResultCode::{BadData, BadState, NoError, OpFailed, Unmappable};

const READ: i32 = 1;
const READ_WRITE: i32 = 3;

fn file_of(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    file
}

fn all_of(memory: &Arc<Memory>) -> Argument {
    Argument::Memory { memory: Arc::clone(memory), offset: 0, length: memory.size() }
}

/// Whole memories that were made for roles.
fn whole(memory: &Arc<Memory>) -> Argument {
    Argument::Memory { memory: Arc::clone(memory), offset: 0, length: 0 }
}

#[test]
fn constants_and_arguments_lie_in_files_at_any_offset() {
    let mut content = vec![9; 13]; // an odd place
    content.extend(bytes(&[1.0, 2.0, 3.0, 4.0]));
    content.push(7);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights");
    std::fs::write(&path, &content).unwrap();
    let read_only = File::open(&path).unwrap();
    let weights = Memory::from_fd(content.len(), READ, read_only.as_fd(), 0).unwrap();
    drop(read_only);
    let net = Net::new();
    let (x, w) = (net.floats(&[4]), net.floats(&[4]));
    net.0.set_operand_value_from_memory(signed(w), &weights, 13, 16).unwrap();
    let (none, y) = (net.int(0), net.floats(&[4]));
    net.run(OperationType::Add, &[x, w, none], y);
    let model = net.finish(&[x], &[y]);
    let compilation = compiled(&model, &Registry::of(vec![reference()]));
    // Nobody is killed by a file that is gone once the model is ready.
    File::options().write(true).open(&path).unwrap().set_len(0).unwrap();

    let input = file_of(&[&[0; 5][..], &bytes(&[10.0, 20.0, 30.0, 40.0])].concat());
    let output = file_of(&[0; 40]);
    let input = Memory::from_fd(16, READ_WRITE, input.as_fd(), 5).unwrap();
    let there = Memory::from_fd(30, READ_WRITE, output.as_fd(), 3).unwrap();
    let execution = Execution::new(&compilation).unwrap();
    execution.set_input(0, None, all_of(&input)).unwrap();
    let argument = Argument::Memory { memory: there, offset: 2, length: 16 };
    execution.set_output(0, None, argument).unwrap();
    execution.compute().unwrap();
    let mut found = vec![0; 16];
    std::os::unix::fs::FileExt::read_exact_at(&output, &mut found, 5).unwrap();
    assert_eq!(values(&found), [11.0, 22.0, 33.0, 44.0]);
}

#[test]
fn a_file_that_is_cut_before_the_model_is_prepared_is_an_error_and_no_signal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights");
    std::fs::write(&path, bytes(&[1.0; 4])).unwrap();
    let file = File::open(&path).unwrap();
    let weights = Memory::from_fd(16, READ, file.as_fd(), 0).unwrap();
    let net = Net::new();
    let (x, w) = (net.floats(&[4]), net.floats(&[4]));
    net.0.set_operand_value_from_memory(signed(w), &weights, 0, 16).unwrap();
    let (none, y) = (net.int(0), net.floats(&[4]));
    net.run(OperationType::Add, &[x, w, none], y);
    let model = net.finish(&[x], &[y]);
    File::options().write(true).open(&path).unwrap().set_len(4).unwrap();
    let compilation = Compilation::for_devices(&model, &[reference()]).unwrap();
    assert_ne!(code(compilation.finish()), NoError);
}

#[test]
fn a_file_that_cannot_be_used_shows_with_its_first_use() {
    let file = file_of(&[0; 8]);
    assert_eq!(code(Memory::from_fd(0, READ, file.as_fd(), 0)), BadData);
    assert_eq!(code(Memory::from_fd(2, READ, file.as_fd(), usize::MAX)), BadData);
    let folder = tempfile::tempdir().unwrap();
    let directory = File::open(folder.path()).unwrap();
    std::fs::write(folder.path().join("short"), [0; 8]).unwrap();
    let read_only = File::open(folder.path().join("short")).unwrap();
    let compilation = compiled(&chain(), &Registry::of(vec![reference()]));
    for (what, memory) in [
        ("shorter than it is said to be", Memory::from_fd(16, READ, file.as_fd(), 0)),
        ("no file", Memory::from_fd(16, READ, directory.as_fd(), 0)),
        ("not to be written", Memory::from_fd(16, READ_WRITE, read_only.as_fd(), 0)),
    ] {
        let memory = memory.unwrap();
        let execution = Execution::new(&compilation).unwrap();
        execution.set_input(0, None, all_of(&memory)).unwrap();
        execution.set_output(0, None, Argument::Host(heap(16))).unwrap();
        assert_eq!(code(execution.compute()), Unmappable, "{what}");
    }
}

#[test]
fn roles_have_to_agree() {
    let registry = Registry::of(vec![reference()]);
    let (chain, open) = (compiled(&chain(), &registry), compiled(&open_sum(), &registry));
    let desc = MemoryDesc::new();
    for (what, found, want) in [
        ("no such input", desc.add_input_role(&chain, 1, 1.0), BadData),
        ("never", desc.add_input_role(&chain, 0, 0.0), BadData),
        ("more than always", desc.add_input_role(&chain, 0, 1.5), BadData),
        ("no number", desc.add_input_role(&chain, 0, f32::NAN), BadData),
        ("an input", desc.add_input_role(&chain, 0, 1.0), NoError),
        ("the same again", desc.add_input_role(&chain, 0, 0.5), BadData),
        ("an output", desc.add_output_role(&chain, 0, 1.0), NoError),
        ("of another model", desc.add_input_role(&open, 0, 1.0), NoError),
        ("another rank", desc.set_dimensions(&[2, 2]), BadData),
        ("another size", desc.set_dimensions(&[5]), BadData),
        ("the same size", desc.set_dimensions(&[4]), NoError),
        ("nothing more", desc.set_dimensions(&[]), NoError),
    ] {
        assert_eq!(code(found), want, "{what}");
    }
    assert_eq!(code(Memory::from_desc(&desc)), BadState, "not finished");
    desc.finish().unwrap();
    assert_eq!(code(desc.finish()), BadState);
    assert_eq!(code(desc.add_output_role(&open, 0, 1.0)), BadState);
    assert_eq!(code(desc.set_dimensions(&[])), BadState);
    assert_eq!(code(Memory::from_desc(&desc)), NoError);
    assert_eq!(code(MemoryDesc::new().finish()), BadData, "no role");

    let unknown = MemoryDesc::new();
    unknown.add_input_role(&open, 0, 1.0).unwrap();
    unknown.finish().unwrap();
    assert_eq!(code(Memory::from_desc(&unknown)), OpFailed, "of unknown size");
}

#[test]
fn a_memory_for_roles_is_used_for_them_alone_as_a_whole_and_with_a_value() {
    let registry = Registry::of(vec![reference()]);
    let (first, second) = (compiled(&chain(), &registry), compiled(&chain(), &registry));
    let desc = MemoryDesc::new();
    desc.add_output_role(&first, 0, 1.0).unwrap();
    desc.add_input_role(&second, 0, 1.0).unwrap();
    desc.finish().unwrap();
    let memory = Memory::from_desc(&desc).unwrap();
    let writer = || Execution::new(&first).unwrap();
    let reader = || Execution::new(&second).unwrap();
    assert_eq!(code(writer().set_input(0, None, whole(&memory))), BadData, "no such role");
    assert_eq!(code(reader().set_output(0, None, whole(&memory))), BadData);
    let part = Argument::Memory { memory: memory.clone(), offset: 0, length: 8 };
    assert_eq!(code(writer().set_output(0, None, part)), BadData, "a part");
    let model = crate::Model::new();
    model.add_operand(&floats(&[4])).unwrap();
    assert_eq!(code(model.set_operand_value_from_memory(0, &memory, 0, 16)), BadData);

    let read = || {
        let execution = reader();
        execution.set_input(0, None, whole(&memory)).unwrap();
        let output = heap(16);
        execution.set_output(0, None, Argument::Host(output.clone())).unwrap();
        execution.compute().map(|()| values(&output.to_vec()))
    };
    assert_eq!(code(read()), OpFailed, "nobody has written it");
    let execution = writer();
    execution.set_input(0, None, host(&[0.0, 1.0, 0.0, 0.0])).unwrap();
    execution.set_output(0, None, whole(&memory)).unwrap();
    execution.compute().unwrap();
    assert_eq!(read().unwrap(), [0.0, 21.0, 0.0, 0.0], "3 by the first, 21 by the second");
}

#[test]
fn copies_are_of_all_of_a_value_between_memories_that_agree() {
    let registry = Registry::of(vec![reference()]);
    let compilation = compiled(&chain(), &registry);
    let for_input = || {
        let desc = MemoryDesc::new();
        desc.add_input_role(&compilation, 0, 1.0).unwrap();
        desc.finish().unwrap();
        Memory::from_desc(&desc).unwrap()
    };
    let plain = |content: Vec<u8>| {
        let heap = Arc::new(HeapMemory::new(content));
        (Memory::from_pool(heap.clone()), heap)
    };
    let (from, _) = plain(bytes(&CHAIN_IN));
    let (to, behind) = plain(vec![0; 16]);
    Memory::copy(&from, &to).unwrap();
    assert_eq!(behind.to_vec(), bytes(&CHAIN_IN));
    assert_eq!(code(Memory::copy(&from, &plain(vec![0; 15]).0)), BadData, "another size");
    assert_eq!(code(Memory::copy(&from, &from)), NoError, "itself");
    let (one, other) = (for_input(), for_input());
    assert_eq!(code(Memory::copy(&one, &to)), BadData, "it has no value");
    assert_eq!(code(Memory::copy(&plain(vec![0; 12]).0, &one)), BadData, "another size");
    Memory::copy(&from, &one).unwrap();
    Memory::copy(&one, &other).unwrap();
    Memory::copy(&other, &plain(vec![0; 16]).0).unwrap();
    let execution = Execution::new(&compilation).unwrap();
    execution.set_input(0, None, whole(&other)).unwrap();
    let output = heap(16);
    execution.set_output(0, None, Argument::Host(output.clone())).unwrap();
    execution.compute().unwrap();
    assert_eq!(values(&output.to_vec()), CHAIN_OUT);

    let file = file_of(&[&[1; 3][..], &bytes(&CHAIN_IN)].concat());
    let part = Memory::from_fd(16, READ, file.as_fd(), 3).unwrap();
    let (to, behind) = plain(vec![0; 16]);
    Memory::copy(&part, &to).unwrap();
    assert_eq!(behind.to_vec(), bytes(&CHAIN_IN), "a part of a file");
    // A copy that fails leaves nothing behind.
    file.set_len(3).unwrap();
    assert_ne!(code(Memory::copy(&part, &one)), NoError);
    assert_eq!(code(Memory::copy(&one, &to)), BadData, "its value is gone");
    let other_type = {
        let open = compiled(&open_sum(), &registry);
        let desc = MemoryDesc::new();
        desc.add_input_role(&open, 0, 1.0).unwrap();
        desc.set_dimensions(&[3]).unwrap();
        desc.finish().unwrap();
        let memory = Memory::from_desc(&desc).unwrap();
        Memory::copy(&plain(vec![0; 12]).0, &memory).unwrap();
        memory
    };
    for (what, source) in [
        ("too long", plain(vec![0; 20]).0),
        ("without a value", for_input()),
        ("of other dimensions", other_type),
        ("beyond its file", Memory::from_fd(16, READ, file.as_fd(), 1000).unwrap()),
    ] {
        Memory::copy(&from, &other).unwrap();
        assert_ne!(code(Memory::copy(&source, &other)), NoError, "{what}");
        assert_eq!(code(Memory::copy(&other, &to)), BadData, "{what}: its value is gone");
    }
}

#[test]
fn a_memory_that_was_made_for_reading_is_neither_an_output_nor_copied_into() {
    let compilation = compiled(&chain(), &Registry::of(vec![reference()]));
    let content = bytes(&[7.0; 4]);
    let file = file_of(&content);
    let made = |prot| Memory::from_fd(16, prot, file.as_fd(), 0).unwrap();
    let (read_only, writable) = (made(READ), made(READ_WRITE));
    let execution = Execution::new(&compilation).unwrap();
    execution.set_input(0, None, all_of(&read_only)).unwrap();
    assert_eq!(code(execution.set_output(0, None, all_of(&read_only))), BadData);
    let source = Memory::from_pool(Arc::new(HeapMemory::new(bytes(&CHAIN_IN))));
    assert_eq!(code(Memory::copy(&source, &read_only)), BadData);
    let mut found = vec![0; 16];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut found, 0).unwrap();
    assert_eq!(found, content, "nothing was written");
    execution.set_output(0, None, all_of(&writable)).unwrap();
    Memory::copy(&source, &writable).unwrap();
}
