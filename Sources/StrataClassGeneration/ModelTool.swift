import Foundation
import StrataModelFiles

/// The program that the plugins run.
///
///     build --module M --classes FILE --accessors FILE [--model M.xcdatamodeld [--copy FOLDER] [--compile FOLDER]]…
///           [--sources FILE…] [--others MODULE FILE…]
///     classes --module M --into FOLDER --model M.xcdatamodeld
///     port [--drop] FILE…
package enum ModelTool {
    /// - Returns: The exit status.
    package static func run(_ arguments: [String]) -> Int32 {
        do {
            switch arguments.first {
            case "build": return try build(Options(arguments.dropFirst()))
            case "classes": return try classes(Options(arguments.dropFirst()))
            case "port": return try port(Array(arguments.dropFirst()))
            default: throw UsageError(text: "needs one of build, classes and port")
            }
        } catch let error as UsageError {
            report("error: \(error.text)")
        } catch let error as ModelError {
            report(ModelBuild.error(error, in: error.file ?? URL(fileURLWithPath: "/")))
        } catch {
            report("error: \(error.localizedDescription)")
        }
        return 1
    }

    private struct UsageError: Error {
        let text: String
    }

    /// Options with their values, in order.
    private struct Options {
        private let values: [(name: String, values: [String])]

        init(_ arguments: ArraySlice<String>) {
            var values: [(name: String, values: [String])] = []
            for argument in arguments {
                if argument.hasPrefix("--") {
                    values.append((String(argument.dropFirst(2)), []))
                } else if !values.isEmpty {
                    values[values.count - 1].values.append(argument)
                }
            }
            self.values = values
        }

        func all(_ name: String) -> [[String]] { values.filter { $0.name == name }.map(\.values) }

        func one(_ name: String) throws(UsageError) -> String {
            guard let value = all(name).first?.first else { throw UsageError(text: "--\(name) is missing") }
            return value
        }

        func file(_ name: String) throws(UsageError) -> URL { URL(fileURLWithPath: try one(name)) }
    }

    // MARK: - Building

    private static func build(_ options: Options) throws -> Int32 {
        let module = try options.one("module")
        let build = ModelBuild(
            module: module,
            models: options.all("model").compactMap(\.first).map { URL(fileURLWithPath: $0) },
            sources: try options.all("sources").flatMap(\.self).map { try source($0, module) },
            others: try options.all("others").flatMap { values in
                try values.dropFirst().map { try source($0, values[0]) }
            }
        )
        let output = build.run()
        for error in output.errors { report(error) }
        guard output.errors.isEmpty else { return 1 }
        let accessors = try options.file("accessors")
        if output.suppliesMembers {
            let answers = accessors.deletingLastPathComponent().appendingPathComponent("checked-compiler.txt")
            if let complaint = CompilerProbe.find()?.complaint(answers: answers) {
                report("error: \(complaint)")
                return 1
            }
        }
        try ModelPlacing.write(Data(output.classes.utf8), to: try options.file("classes"))
        try ModelPlacing.write(Data(output.accessors.utf8), to: accessors)
        for pair in options.all("copy") where pair.count == 2 {
            try ModelPlacing.copy(URL(fileURLWithPath: pair[0]), to: URL(fileURLWithPath: pair[1]))
        }
        for pair in options.all("compile") where pair.count == 2 {
            try ModelPlacing.compile(URL(fileURLWithPath: pair[0]), to: URL(fileURLWithPath: pair[1]))
        }
        return 0
    }

    private static func source(_ path: String, _ module: String) throws -> SourceFile {
        SourceFile(
            path: path,
            text: String(decoding: try Data(contentsOf: URL(fileURLWithPath: path)), as: UTF8.self),
            module: module
        )
    }

    // MARK: - Files in the source tree

    private static func classes(_ options: Options) throws -> Int32 {
        let folder = try options.file("into")
        let module = try options.one("module")
        let sources = try options.all("sources").flatMap(\.self).map { try source($0, module) }
        let (model, file) = try ModelBuild.read(try options.file("model"))
        let generator = ClassGenerator(
            model,
            module: module,
            declarations: SourceDeclarations(module: module, files: sources),
            style: .macros
        )
        let faults = model.faults + generator.faults
        for fault in faults { report(ModelBuild.error(fault, in: file)) }
        guard faults.isEmpty else { return 1 }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for file in generator.files() {
            let url = folder.appendingPathComponent(file.name)
            // If the file of the class exists, it belongs to its author.
            let isKept = file.name.hasSuffix("+CoreDataClass.swift") && FileManager.default.fileExists(atPath: url.path)
            if isKept { continue }
            try ModelPlacing.write(Data(file.text.utf8), to: url)
            print(url.path)
        }
        return 0
    }

    // MARK: - Porting

    private static func port(_ arguments: [String]) throws -> Int32 {
        let objectiveC: SourcePorter.ObjectiveC = arguments.contains("--drop") ? .drop : .wrap
        for path in arguments where !path.hasPrefix("--") {
            let url = URL(fileURLWithPath: path)
            let text = String(decoding: try Data(contentsOf: url), as: UTF8.self)
            let result = SourcePorter.port(text, objectiveC)
            if result.text != text {
                try Data(result.text.utf8).write(to: url)
                print("\(path): rewritten")
            }
            for remark in result.remarks { print("\(path):\(remark.line): \(remark.message)") }
        }
        return 0
    }

    private static func report(_ text: String) {
        FileHandle.standardError.write(Data((text + "\n").utf8))
    }
}
