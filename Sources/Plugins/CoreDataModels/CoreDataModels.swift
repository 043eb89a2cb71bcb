import Foundation
import PackagePlugin

/// Generates the classes of a target's models and the accessors of its `@NSManaged` members.
///
/// It also puts the models into the target's bundle.
@main
struct CoreDataModels: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        guard let target = target as? any SourceModuleTarget & Target, let module = target as? SwiftSourceModuleTarget
        else {
            return []
        }
        let files = Array(module.sourceFiles)
        let models = files.filter { ["xcdatamodeld", "xcdatamodel"].contains($0.url.pathExtension) }
        let sources = files.filter { $0.type == .source && $0.url.pathExtension == "swift" }.map(\.url)
        let others = importedModules(of: target)

        let folder = context.pluginWorkDirectoryURL
        let classes = folder.appending(path: "\(module.moduleName)+CoreDataModels.swift")
        let accessors = folder.appending(path: "\(module.moduleName)+NSManaged.swift")
        var arguments = [
            "build", "--module", module.moduleName, "--classes", classes.path, "--accessors", accessors.path,
        ]
        var inputs = sources + others.flatMap(\.sources)
        var outputs = [classes, accessors]
        for model in models {
            arguments += ["--model", model.url.path]
            inputs += [model.url] + parts(of: model.url)
            // If the manifest names the model as a resource, SwiftPM puts it there.
            if model.type != .resource {
                let copy = folder.appending(path: model.url.lastPathComponent)
                arguments += ["--copy", model.url.path, copy.path]
                outputs.append(copy)
            }
            // This is the form that Xcode compiles it to.
            let kind = model.url.pathExtension == "xcdatamodeld" ? "momd" : "mom"
            let compiled = folder.appending(path: model.url.deletingPathExtension().lastPathComponent + "." + kind)
            arguments += ["--compile", model.url.path, compiled.path]
            outputs.append(compiled)
        }
        arguments += ["--sources"] + sources.map(\.path)
        for other in others { arguments += ["--others", other.name] + other.sources.map(\.path) }
        return [
            .buildCommand(
                displayName: "Core Data models of \(target.name)",
                executable: try context.tool(named: "StrataModelTool").url,
                arguments: arguments,
                inputFiles: inputs,
                outputFiles: outputs
            )
        ]
    }

    /// The files in a model.
    private func parts(of model: URL) -> [URL] {
        let paths = (try? FileManager.default.subpathsOfDirectory(atPath: model.path)) ?? []
        return paths.map { model.appending(path: $0) }.filter {
            !$0.hasDirectoryPath || $0.pathExtension == "xcdatamodel"
        }
    }

    /// The modules on which the target depends directly, for the types that they declare, without the framework's own.
    private func importedModules(of target: any Target) -> [(name: String, sources: [URL])] {
        let targets = target.dependencies.flatMap { dependency -> [any Target] in
            switch dependency {
            case .target(let target): [target]
            case .product(let product): product.targets
            @unknown default: []
            }
        }
        return targets.compactMap { $0 as? SwiftSourceModuleTarget }
            .filter { $0.moduleName != "CoreData" && !$0.moduleName.hasPrefix("Strata") && $0.kind != .macro }
            .map { module in
                (
                    module.moduleName,
                    module.sourceFiles(withSuffix: "swift").map(\.url).filter { !$0.path.contains("/Plugins/") }
                )
            }
    }
}
