import Foundation
import StrataModelFiles

/// The output of a build for the models and sources of one target.
package struct ModelBuild {
    package let module: String
    package let models: [URL]
    package let sources: [SourceFile]
    package let others: [SourceFile]

    package init(module: String, models: [URL], sources: [SourceFile], others: [SourceFile] = []) {
        self.module = module
        self.models = models
        self.sources = sources
        self.others = others
    }

    package struct Output: Sendable {
        package var classes = ""
        package var accessors = "// No class has @NSManaged members.\n"
        /// Whether there are members that need the accessors.
        package var suppliesMembers = false
        /// Problems in the compiler's form: `file:line:column: error: …`.
        package var errors: [String] = []
    }

    package func run() -> Output {
        var output = Output()
        var declarations = SourceDeclarations(module: module, files: sources, others: others)
        var texts: [String] = []
        for model in models {
            do {
                let (source, file) = try Self.read(model)
                let generator = ClassGenerator(source, module: module, declarations: declarations)
                let faults = source.faults + generator.faults
                output.errors += faults.map { Self.error($0, in: file) }
                if faults.isEmpty { texts.append(generator.text(modelName: model.lastPathComponent)) }
            } catch {
                output.errors.append(Self.error(error, in: error.file ?? model))
            }
        }
        output.classes =
            texts.isEmpty ? "// There is no model to generate classes from.\n" : texts.joined(separator: "\n")
        // Without the classes of a faulty model their names would be unknown everywhere, so the model's problems are
        // reported first.
        guard output.errors.isEmpty else { return output }
        // Managed properties may have generated classes as types.
        declarations.add(texts.map { SourceFile(path: "", text: $0, module: module) })
        let accessors = AccessorGenerator(declarations).generate()
        output.errors += accessors.faults.map { "\($0.path):\($0.line):\($0.column): error: \($0.message)" }
        output.suppliesMembers = !accessors.symbols.isEmpty
        if !accessors.text.isEmpty { output.accessors = accessors.text }
        return output
    }

    /// Reads the current version of a model, and the file that contains it.
    package static func read(_ model: URL) throws(ModelError) -> (source: ModelSource, file: URL) {
        let contents = try ModelPackage.contents(at: model)
        do throws(ModelError) {
            guard !contents.data.starts(with: Data("bplist".utf8)) else {
                throw ModelError(
                    .unsupported,
                    "a compiled model has no code generation; use the model that it was made of"
                )
            }
            return (try ModelSource(xml: contents.data), contents.file)
        } catch {
            var error = error
            error.file = contents.file
            throw error
        }
    }

    package static func error(_ fault: ModelError, in file: URL) -> String {
        "\(file.path):\(fault.line ?? 1):1: error: \(fault.sentence)"
    }
}
