/// `@ManagedComposite`: the conformance of a structure whose stored properties are the elements of a composite attribute.
///
/// The list of elements is a member, so that the names of types and the initial values have the same meaning as beside
/// the properties. The initialiser is in an extension, so that the structure keeps its memberwise one. It names no
/// types.
enum ManagedCompositeMacro {
    static func expand(_ request: ExpansionRequest) -> Expansion {
        do throws(Diagnostic) {
            let declaration = try StructDeclaration(reading: request.declaration)
            switch request.role {
            case "member": return Expansion(source: elements(of: declaration))
            case "extension": return Expansion(source: conformance(of: declaration, in: request.surroundings))
            default: throw Diagnostic("@ManagedComposite cannot be expanded as '\(request.role)'.", at: 0..<0)
            }
        } catch {
            // Both roles read the same declaration, but only one of them reports.
            return Expansion(diagnostics: request.role == "extension" ? [] : [error])
        }
    }

    private static func elements(of declaration: StructDeclaration) -> String {
        var lines = ["\(declaration.access)static var managedElements: [CoreData.ManagedElement] {", "    ["]
        for element in declaration.elements {
            let value = element.initialValue.map { ", default: \($0)" } ?? ""
            lines.append("        CoreData.ManagedElement(\"\(element.bareName)\", \(element.type.metatype)\(value)),")
        }
        return (lines + ["    ]", "}"]).joined(separator: "\n")
    }

    private static func conformance(of declaration: StructDeclaration, in surroundings: [String]) -> String {
        let access = declaration.access
        let outer = surroundings.reversed().compactMap { source in
            var cursor = Cursor(source)
            return cursor.readHeader()?.name?.text
        }
        var lines = [
            "extension \((outer + [declaration.name]).joined(separator: ".")): CoreData.ManagedComposite {",
            "    \(access)init(managedElementValues values: [String: Any]) {",
        ]
        for element in declaration.elements {
            lines.append("        self.\(element.name) = Self.managedElement(\"\(element.bareName)\", in: values)")
        }
        lines += [
            "    }", "    \(access)var managedElementValues: [String: Any] {",
            "        var values: [String: Any] = [:]",
        ]
        for element in declaration.elements {
            lines.append(
                "        values[\"\(element.bareName)\"] = CoreData.ManagedElement.stored(self.\(element.name) as Any)"
            )
        }
        lines += ["        return values", "    }", "}"]
        return lines.joined(separator: "\n")
    }
}
