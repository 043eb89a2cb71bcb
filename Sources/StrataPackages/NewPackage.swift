import Foundation

/// A package to start with: a model in Swift, a store, and a program that uses both.
///
/// It builds and runs as it is.
///
/// This is apart from the framework, so that the program that makes a package is built within seconds.
package struct NewPackage {
    /// The reason why no package is made, for somebody who has asked for one.
    package struct Refusal: Error, CustomStringConvertible {
        package let description: String
    }

    /// The folder of the package.
    package let folder: URL
    private let name: String
    private let strata: StrataSource
    private let usesSwiftData: Bool

    /// Checks what a package is to be; nothing is written.
    ///
    /// - Parameters:
    ///   - name: The name of the package and of its program.
    ///   - parent: The path of the folder in which the package's folder is made.
    ///   - strata: The path of Strata's own package, or the address of its repository; `nil` for the package that this
    ///     program was built from.
    ///   - usesSwiftData: Whether the package has `@Model` classes in place of a Core Data model.
    /// - Throws: ``Refusal``.
    package init(_ name: String, in parent: String, strata: String?, usesSwiftData: Bool) throws {
        guard name.wholeMatch(of: /[A-Za-z][A-Za-z0-9_]*/) != nil, name != "CoreData", name != "SwiftData" else {
            throw Refusal(
                description: "“\(name)” is no name for a package: letters, digits and underscores, a letter first"
            )
        }
        folder = URL(fileURLWithPath: parent, isDirectory: true).appendingPathComponent(name)
        guard !FileManager.default.fileExists(atPath: folder.path) else {
            throw Refusal(description: "there is something at \(folder.path) already")
        }
        let given = strata.map {
            StrataSource.repository(at: $0) ?? .folder(URL(fileURLWithPath: $0, isDirectory: true))
        }
        guard let source = given ?? Self.ownPackage().map(StrataSource.folder), source.isUsable else {
            throw Refusal(description: "--strata has to say where Strata's own package or its repository is")
        }
        (self.name, self.strata, self.usesSwiftData) = (name, source, usesSwiftData)
    }

    /// Writes the files.
    ///
    /// - Returns: A line that says how to run the package.
    /// - Throws: Errors of the disk.
    package func write() throws -> String {
        let sources = folder.appendingPathComponent("Sources").appendingPathComponent(name)
        try FileManager.default.createDirectory(at: sources, withIntermediateDirectories: true)
        let manifest = PackageTemplate.manifest(name, strata, product: usesSwiftData ? "SwiftData" : "CoreData")
        let files = [
            (folder.appendingPathComponent("Package.swift"), manifest),
            (
                sources.appendingPathComponent("Model.swift"),
                usesSwiftData ? SwiftDataTemplate.model : PackageTemplate.model
            ),
            (
                sources.appendingPathComponent("Store.swift"),
                usesSwiftData ? SwiftDataTemplate.store : PackageTemplate.store(name)
            ),
            (
                sources.appendingPathComponent("main.swift"),
                usesSwiftData ? SwiftDataTemplate.program : PackageTemplate.program
            ),
        ]
        for (file, text) in files { try Data(text.utf8).write(to: file) }
        return "\(folder.path) is a package. Run it with: cd \(folder.path) && swift run"
    }

    /// The package that this program was built from, if it still exists.
    ///
    /// - Parameters:
    ///   - program: The place of the program: mostly inside of the package, but not if it was built with
    ///     `--scratch-path`.
    ///   - source: The place of this file when it was compiled.
    /// - Returns: The folder of the package.
    package static func ownPackage(
        of program: URL? = Bundle.main.executableURL,
        builtFrom source: String = #filePath
    ) -> URL? {
        let places = [program?.resolvingSymlinksInPath(), URL(fileURLWithPath: source)]
        return places.lazy.compactMap { $0 }.compactMap { package(around: $0) }.first
    }

    private static func package(around file: URL) -> URL? {
        var folder = file.deletingLastPathComponent()
        while folder.path != "/" {
            let manifest = folder.appendingPathComponent("Package.swift")
            if let text = try? String(contentsOf: manifest, encoding: .utf8), text.contains("name: \"Strata\"") {
                return folder
            }
            folder.deleteLastPathComponent()
        }
        return nil
    }
}
