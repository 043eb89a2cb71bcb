import CoreData

/// A program of `interleave` that can be cut down.
final class SteppedInterleave: SteppedProgram {
    private let program: InterleaveProgram
    private(set) var script: [String] = []
    private(set) var places: [Int] = []
    private(set) var isOver = false

    init(_ stack: NSPersistentStoreCoordinator, _ stream: inout SeededStream, _ isSabotaged: Bool) throws {
        program = InterleaveProgram(stack, &stream, isSabotaged)
        // Of what the one before has left.
        try program.clean(stack)
    }

    var branches: [String: Int] { program.branches }

    func call(_ stream: inout SeededStream) throws -> String? {
        let trouble = program.step(&stream)
        places.append(program.lastCall.place)
        script.append("context \(program.lastCall.place): \(program.lastCall.name)")
        isOver = trouble == InterleaveProgram.undefined
        return isOver ? nil : trouble
    }
}
