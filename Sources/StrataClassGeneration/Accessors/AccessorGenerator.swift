import StrataSwiftSyntax

/// Writes the functions that `@NSManaged` members lack on Linux.
///
/// They have the symbol names of the members' accessors.
///
/// The compiler type-checks a class with `@NSManaged` members, and calls accessors that only the Objective-C runtime
/// would supply. A method of an extension receives the object in the same place as a getter. So a method with the
/// getter's symbol is the getter.
package struct AccessorGenerator {
    private let declarations: SourceDeclarations
    private let resolver: TypeResolver

    package init(_ declarations: SourceDeclarations) {
        self.declarations = declarations
        resolver = TypeResolver(declarations: declarations)
    }

    /// A problem with a member, and its place.
    package struct Fault: Error, Equatable, Sendable {
        package let path: String
        package let line: Int
        package let column: Int
        package let message: String
    }

    package struct Result: Sendable {
        /// Swift source; empty if no member needs it.
        package var text = ""
        package var faults: [Fault] = []
        /// The symbols, in the order of the members.
        package var symbols: [String] = []
    }

    package func generate() -> Result {
        var result = Result()
        var parts: [String] = []
        for (number, member) in declarations.members.enumerated() {
            do throws(TypeResolver.Failure) {
                parts.append(try part(for: member, number, &result.symbols))
            } catch {
                result.faults.append(fault(member, error.reason))
            }
        }
        if !parts.isEmpty { result.text = header() + parts.joined(separator: "\n") }
        return result
    }

    private func fault(_ member: ManagedMember, _ reason: String) -> Fault {
        let help =
            if case .property = member.form {
                "Declare it with @Managed in place of @NSManaged"
            } else {
                "Declare it with @ManagedAccessor in place of @NSManaged"
            }
        return Fault(
            path: member.file.path,
            line: member.line,
            column: member.column,
            message: "@NSManaged cannot be supplied for '\(member.name)': \(reason). \(help)."
        )
    }

    private func header() -> String {
        // If one file imports a module publicly, this file must import it publicly, too: methods may be public here.
        let levels = ["public", "package", nil, "internal", "fileprivate", "private"]
        var imports: [String: String?] = ["CoreData": nil, "Foundation": nil]
        for found in declarations.imports {
            guard let known = imports[found.module] else {
                imports[found.module] = .some(found.access)
                continue
            }
            let order = { (level: String?) in levels.firstIndex(of: level) ?? 0 }
            if order(found.access) < order(known) { imports[found.module] = .some(found.access) }
        }
        let lines = imports.sorted { $0.key < $1.key }.map { module, access in
            (access.map { $0 == "private" || $0 == "fileprivate" ? "internal " : "\($0) " } ?? "")
                + "import \(module)\n"
        }
        return "// The accessors of @NSManaged members. Changes are lost with the next build.\n\n\(lines.joined())\n"
    }

    // MARK: - Members

    private func part(
        for member: ManagedMember,
        _ number: Int,
        _ symbols: inout [String]
    ) throws(TypeResolver.Failure) -> String {
        guard member.name.utf8.allSatisfy({ $0 < 0x80 }) else {
            throw TypeResolver.Failure(reason: "its name has letters beyond ASCII")
        }
        guard let owner = declarations.find(member.owner, in: []) ?? managedClass(member.owner) else {
            throw TypeResolver.Failure(reason: "the class \(member.owner.joined(separator: ".")) is unknown")
        }
        guard owner.alias == nil, owner.kind == .class else {
            throw TypeResolver.Failure(reason: "\(member.owner.joined(separator: ".")) is not a class")
        }
        guard !owner.isHidden else {
            throw TypeResolver.Failure(reason: "its class is private, so generated code cannot extend it")
        }
        guard !owner.isGeneric else { throw TypeResolver.Failure(reason: "its class is generic") }
        let mangled = MangledMember(
            owner: resolver.name(of: owner),
            extensionModule: owner.module == declarations.module ? nil : declarations.module,
            name: member.name,
            discriminator: member.isPrivate ? member.file.discriminator : nil
        )
        let body: String
        switch member.form {
        case .property(let type):
            let resolved = try resolver.resolve(type, in: owner.path)
            let (getter, setter) = (
                Mangler.accessor("g", of: mangled, type: resolved), Mangler.accessor("s", of: mangled, type: resolved)
            )
            symbols += [getter, setter]
            body = property(member, type: type, number: number, getter: getter, setter: setter)
        case .method(let parameters, let isVoid):
            let call = ToManyAccessor.call(
                member.name,
                labels: parameters.map { $0.label ?? "_" },
                names: parameters.map { "p" + $0.name },
                key: nil
            )
            guard isVoid, let call else {
                throw TypeResolver.Failure(reason: "it is none of the methods that change to-many relationships")
            }
            var types: [(label: String?, type: MangledType)] = []
            for parameter in parameters {
                types.append((parameter.label, try resolver.resolve(parameter.type, in: owner.path)))
            }
            let symbol = Mangler.method(mangled, parameters: types)
            symbols.append(symbol)
            let list = parameters.map { "_ p\($0.name): \($0.type)" }.joined(separator: ", ")
            // The declaration of a managed method is dynamic. If the definition is not, the compiler stops at calls of
            // another module in a release build.
            body = """
                    @_silgen_name("\(symbol)")
                    \(Self.modifier(member.access))dynamic final func _managed\(number)(\(list)) { \(call) }

                """
        }
        return conditional(member.conditions, "extension \(owner.path.joined(separator: ".")) {\n\(body)}\n")
    }

    private func property(
        _ member: ManagedMember,
        type: String,
        number: Int,
        getter: String,
        setter: String
    ) -> String {
        let access = Self.modifier(member.access)
        let setterAccess = Self.modifier(member.setterAccess)
        return """
                nonisolated private static let _slot\(number) = CoreData.ManagedProperty<\(type)>("\(member.name)")
                @_silgen_name("\(getter)")
                \(access)final func _managedGet\(number)() -> \(type) { managedValue(Self._slot\(number)) }
                @_silgen_name("\(setter)")
                \(setterAccess)final func _managedSet\(number)(_ value: consuming \(type)) { setManagedValue(value, Self._slot\(number)) }

            """
    }

    /// The modifier that makes a definition as visible as its declaration: the optimiser refuses another linkage.
    private static func modifier(_ access: String?) -> String { access.map { $0 + " " } ?? "" }

    /// A class of the framework that an extension adds members to.
    private func managedClass(_ path: [String]) -> DeclaredType? {
        guard path.last == "NSManagedObject", path.count == 1 || path == ["CoreData", "NSManagedObject"]
        else {
            return nil
        }
        return DeclaredType(
            module: "CoreDataEssentials",
            path: ["NSManagedObject"],
            kind: .class,
            isGeneric: false,
            isPublic: true,
            isHidden: false
        )
    }

    private func conditional(_ conditions: [[String]], _ text: String) -> String {
        conditions.reversed().reduce(text) { text, lines in
            lines.map { $0 + "\n" }.joined() + text + "#endif\n"
        }
    }
}
