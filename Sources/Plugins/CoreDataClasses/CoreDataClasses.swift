import Foundation
import PackagePlugin

/// `swift package coredata-classes [--target NAME] [--into FOLDER]`: writes the classes of models into the source tree.
@main
struct CoreDataClasses: CommandPlugin {
    func performCommand(context: PluginContext, arguments: [String]) throws {
        var extractor = ArgumentExtractor(arguments)
        let names = extractor.extractOption(named: "target")
        let folder = extractor.extractOption(named: "into").last
        let tool = try context.tool(named: "StrataModelTool").url
        let targets = names.isEmpty ? context.package.targets : try context.package.targets(named: names)
        for target in targets.compactMap({ $0 as? SwiftSourceModuleTarget }) {
            for model in target.sourceFiles where ["xcdatamodeld", "xcdatamodel"].contains(model.url.pathExtension) {
                let into = folder.map { context.package.directoryURL.appending(path: $0) } ?? target.directoryURL
                let sources = target.sourceFiles(withSuffix: "swift").map(\.url.path)
                let process = Process()
                process.executableURL = tool
                process.arguments =
                    ["classes", "--module", target.moduleName, "--into", into.path, "--model", model.url.path]
                    + ["--sources"] + sources
                try process.run()
                process.waitUntilExit()
                guard process.terminationStatus == 0 else {
                    Diagnostics.error("The classes of \(model.url.lastPathComponent) were not written.")
                    continue
                }
            }
        }
    }
}
