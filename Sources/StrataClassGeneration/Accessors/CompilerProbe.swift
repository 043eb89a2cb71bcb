import Foundation

/// Checks whether generated accessors reach their members with the compiler in use.
///
/// The accessors are found by symbol names, which are an internal matter of the compiler, and receive the object where
/// the compiler passes it today. If a compiler does either in another way, the build must notice it, and not the
/// program. So a small program with members of several kinds is compiled with its generated accessors, and run. The
/// result is kept until the compiler changes, because the check takes about a second.
package struct CompilerProbe {
    private let compiler: URL

    package init(compiler: URL) { self.compiler = compiler }

    /// Finds the compiler of the build: the one beside the program that has started this one, or else that of the path.
    package static func find(environment: [String: String] = ProcessInfo.processInfo.environment) -> CompilerProbe? {
        var folders: [URL] = []
        if let parent = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(getppid())/exe") {
            folders.append(URL(fileURLWithPath: parent).deletingLastPathComponent())
        }
        folders += (environment["PATH"] ?? "").split(separator: ":").map { URL(fileURLWithPath: String($0)) }
        let found = folders.map { $0.appendingPathComponent("swiftc") }
            .first { FileManager.default.isExecutableFile(atPath: $0.path) }
        return found.map(CompilerProbe.init)
    }

    /// The message for the user, if accessors cannot be generated for this compiler.
    ///
    /// - Parameter answers: A file that keeps the compiler for which the check has succeeded.
    /// - Returns: `nil` if the check succeeds, or if the compiler cannot be run.
    package func complaint(answers: URL) -> String? {
        let key = self.key
        guard (try? String(contentsOf: answers, encoding: .utf8)) != key else { return nil }
        guard let isGood = try? run() else { return nil }
        guard isGood else {
            return
                "\(compiler.path) handles the accessors of @NSManaged members in a way that Strata does not know yet, "
                + "so they cannot be supplied. Use an older toolchain, or declare the members with @Managed and @ManagedAccessor."
        }
        try? Data(key.utf8).write(to: answers)
        return nil
    }

    /// A key that changes with the compiler and with the test program.
    private var key: String {
        let file = compiler.resolvingSymlinksInPath()
        let facts = try? FileManager.default.attributesOfItem(atPath: file.path)
        let size = facts?[.size] as? NSNumber
        let time = (facts?[.modificationDate] as? Date)?.timeIntervalSince1970
        return "\(file.path)\n\(size ?? 0) bytes\n\(time ?? 0)\n\(MD5.hexadecimal(of: Array(Self.source.utf8)))\n"
    }

    /// Whether the test program works.
    ///
    /// - Throws: An error if the program does not compile, which does not concern accessors.
    private func run() throws -> Bool {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("accessors-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (source, accessors) = (
            folder.appendingPathComponent("Probe.swift"), folder.appendingPathComponent("Accessors.swift")
        )
        // The module has the framework's name, so that the accessors find the functions that they call.
        let file = SourceFile(path: source.path, text: Self.source, module: "CoreData")
        let generated = AccessorGenerator(SourceDeclarations(module: "CoreData", files: [file])).generate()
        try Data(Self.source.utf8).write(to: source)
        try Data(generated.text.utf8).write(to: accessors)
        let options = ["-parse-as-library", "-module-name", "CoreData", source.path, accessors.path]
        guard try status(compiler, ["-typecheck"] + options) == 0 else { throw CocoaError(.featureUnsupported) }
        let program = folder.appendingPathComponent("probe")
        guard try status(compiler, options + ["-o", program.path]) == 0 else { return false }
        return try status(program, []) == 0
    }

    private func status(_ program: URL, _ arguments: [String]) throws -> Int32 {
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        process.environment = ProcessInfo.processInfo.environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 }
        try process.run()
        process.waitUntilExit()
        return process.terminationReason == .exit ? process.terminationStatus : -1
    }

    /// A class whose members use all parts of the mangling, and the functions that generated accessors call.
    static let source = """
        import Foundation

        struct ManagedProperty<Value>: Sendable {
            let name: String
            init(_ name: String) { self.name = name }
        }

        class ManagedProbe {
            enum Kind: Int16 { case first, second }

            @NSManaged var managedProbeName: String?
            @NSManaged var dates: [String: Date]
            @NSManaged var kind: Kind
            @NSManaged var next: ManagedProbe?
            @NSManaged private var numbers: Set<NSNumber>
            @NSManaged func addToProbes(_ value: ManagedProbe)
            @NSManaged func replaceProbes(at idx: Int, with value: ManagedProbe)

            private var values: [String: Any] = ["kind": Kind.first, "dates": [String: Date](), "numbers": Set<NSNumber>()]
            private var calls: [String] = []

            final func managedValue<Value>(_ property: ManagedProperty<Value>) -> Value { values[property.name] as! Value }
            final func managedValue<Value>(_ property: ManagedProperty<Value?>) -> Value? { values[property.name] as? Value }
            final func setManagedValue<Value>(_ value: Value, _ property: ManagedProperty<Value>) { values[property.name] = value }
            final func setManagedValue<Value>(_ value: Value?, _ property: ManagedProperty<Value?>) { values[property.name] = value }
            final func addManagedMembers(_ value: ManagedProbe, to key: String) { calls.append(key + " \\(value === self)") }
            final func replaceManagedMembers(at index: Int, with value: ManagedProbe, of key: String) {
                calls.append(key + " \\(index) \\(value === self)")
            }

            func isSound() -> Bool {
                let now = Date()
                managedProbeName = "a"
                managedProbeName? += "b"
                dates["now"] = now
                kind = .second
                next = self
                numbers.insert(7)
                addToProbes(self)
                replaceProbes(at: 4711, with: self)
                let path = \\ManagedProbe.managedProbeName
                return self[keyPath: path] == "ab" && dates == ["now": now] && kind == .second && next === self
                    && numbers == [7] && calls == ["probes true", "probes 4711 true"]
            }
        }

        @main
        enum Program {
            static func main() { exit(ManagedProbe().isSound() ? 0 : 1) }
        }

        """
}
