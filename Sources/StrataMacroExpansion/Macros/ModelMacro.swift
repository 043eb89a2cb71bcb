/// `@Model`: the backing of a class's values, its schema, and its conformance.
///
/// The names that the expansion adds are Apple's, because initialisers written by hand use them.
enum ModelMacro {
    static func expand(_ request: ExpansionRequest) -> Expansion {
        do throws(Diagnostic) {
            switch request.role {
            case "member":
                let declaration = try ModelDeclaration(
                    reading: request.declaration,
                    conforms: request.missingConformances?.contains("PersistentModel") != true
                )
                return Expansion(source: members(of: declaration), diagnostics: findings(about: declaration))
            case "memberAttribute": return try memberAttribute(request)
            case "extension": return Expansion(source: conformance(request))
            default: throw Diagnostic("@Model cannot be expanded as '\(request.role)'.", at: 0..<0)
            }
        } catch {
            // Each role reads the same declaration, but only one of them reports.
            return Expansion(
                source: request.role == "member" ? nil : "",
                diagnostics: request.role == "member" ? [error] : []
            )
        }
    }

    // MARK: - Members

    /// The errors and warnings about members of a class that can be expanded all the same.
    private static func findings(about declaration: ModelDeclaration) -> [Diagnostic] {
        let faults = declaration.faultyProperties.compactMap { property in
            property.problem.map {
                Diagnostic(
                    $0.text,
                    at: property.keywordRange,
                    fixIt: $0.canBeTransient ? leavingOut(property) : nil
                )
            }
        }
        let missing = [missingInitializer(of: declaration)].compactMap { $0 }
        return faults + declaration.properties.compactMap(warning) + missing
    }

    /// The macro's accessors take the place of observers and of property wrappers, as they do with Apple's.
    private static func warning(about property: ModelProperty) -> Diagnostic? {
        let text: String
        if property.hasObservers {
            text =
                "The observers of '\(property.bareName)' never run, because @Model writes its accessors. "
                + "Mark it with @Transient, or observe a computed property that sets it."
        } else if let attribute = property.strangeAttribute {
            text =
                "If @\(attribute) is a property wrapper, then '\(property.bareName)' cannot be stored, because @Model writes its "
                + "accessors. Mark it with @Transient."
        } else {
            return nil
        }
        return Diagnostic(text, at: property.keywordRange, fixIt: leavingOut(property), isWarning: true)
    }

    private static func leavingOut(_ property: ModelProperty) -> Diagnostic.FixIt {
        Diagnostic.FixIt(
            message: "Leave it out of the schema",
            range: property.start..<property.start,
            replacement: "@Transient "
        )
    }

    /// The initialiser that the macro adds is for the library, and hides the one that Swift would make.
    private static func missingInitializer(of declaration: ModelDeclaration) -> Diagnostic? {
        guard !declaration.hasInitializer, !declaration.isSubclass, !declaration.properties.isEmpty else { return nil }
        let needsValues = declaration.properties.contains { property in
            property.initialValue == nil && property.type?.source.hasSuffix("?") != true
        }
        let change = Diagnostic.FixIt(
            message: "Add an initializer",
            range: declaration.end..<declaration.end,
            replacement: "    init() {}\n"
        )
        return Diagnostic(
            "A class with @Model needs an initializer of its own; '\(declaration.name)' has none.",
            at: declaration.nameRange,
            fixIt: needsValues ? nil : change
        )
    }

    private static func members(of declaration: ModelDeclaration) -> String {
        return declaration.isSubclass ? subclassMembers(of: declaration) : rootMembers(of: declaration)
    }

    private static func rootMembers(of declaration: ModelDeclaration) -> String {
        let name = declaration.name
        let required = declaration.isFinal ? "" : "required "
        // Subclasses override members whose types contain the name of this class.
        let root = declaration.isFinal ? "" : "\npublic typealias _$Root = \(name)\n"
        return """
            @SwiftData.Transient
            @exclusivity(unchecked) private var _$storage = SwiftData._ModelStorage<\(name)>()

            @SwiftData.Transient
            public \(declaration.isFinal ? "" : "final ")var _$link: SwiftData._ModelLink {
                _$storage.link
            }

            private var _$backingData: any SwiftData.BackingData<\(name)> {
                get {
                    persistentBackingData
                }
                set {
                    persistentBackingData = newValue
                }
            }
            \(root)
            public var persistentBackingData: any SwiftData.BackingData<\(name)> {
                @storageRestrictions(initializes: _$storage)
                init(initialValue) {
                    _$storage = SwiftData._ModelStorage(initialValue)
                }
                get {
                    _$storage.backing ?? _$storage.makeBacking()
                }
                set {
                    _$storage.replaceBacking(with: newValue)
                }
            }

            \(metadata(of: declaration))

            public \(required)init(backingData: any SwiftData.BackingData<\(name)>) {
            \(initialisations(of: declaration, from: "backingData"))
                _$storage = SwiftData._ModelStorage(backingData)
            \(constants(of: declaration, from: "backingData"))
            }

            \(observation(of: name))
            """
    }

    /// The values of a subclass that its initialiser sets join those of the class above it before they are used.
    private static func subclassMembers(of declaration: ModelDeclaration) -> String {
        let name = declaration.name
        let hasConstants = declaration.properties.contains { $0.isConstant }
        let own =
            "    let values: any SwiftData.BackingData<\(name)> = backingData._generateCurrentClassBackingData()\n"
        return """
            @SwiftData.Transient
            private var _$storage = SwiftData._ModelStorage<\(name)>()

            @SwiftData.Transient
            private var _$isJoined = false

            public override var persistentBackingData: any SwiftData.BackingData<_$Root> {
                get {
                    if !_$isJoined {
                        _$isJoined = true
                        let own = _$storage.backing ?? _$storage.makeBacking()
                        super.persistentBackingData = own._joined(with: super.persistentBackingData)
                    }
                    return super.persistentBackingData
                }
                set {
                    _$isJoined = true
                    super.persistentBackingData = newValue
                }
            }

            \(metadata(of: declaration))

            public required init(backingData: any SwiftData.BackingData<_$Root>) {
            \(hasConstants ? own : "")\(initialisations(of: declaration, from: "values"))
                _$isJoined = true
                super.init(backingData: backingData)
            \(constants(of: declaration, from: "values"))
            }

            \(observation(of: name))
            """
    }

    private static func observation(of name: String) -> String {
        """
        @SwiftData.Transient
        private let _$observers = SwiftData._ModelObservers()

        private var _$observationRegistrar: SwiftData.ObservationRegistrar {
            _$observers.registrar
        }

        internal nonisolated func access<_M>(keyPath: KeyPath<\(name), _M>) {
            _$observers.access(self, keyPath: keyPath)
        }

        internal nonisolated func withMutation<_M, _R>(keyPath: KeyPath<\(name), _M>, _ mutation: () throws -> _R) rethrows -> _R {
            try _$observers.withMutation(of: self, keyPath: keyPath, mutation)
        }

        struct _SwiftDataNoType {
        }
        """
    }

    private static func initialisations(of declaration: ModelDeclaration, from values: String) -> String {
        declaration.members.compactMap { member in
            switch member {
            case .property(let property) where !property.isConstant: "    _\(property.bareName) = _SwiftDataNoType()"
            case .property(let property) where property.initialValue == nil:
                "    \(property.name) = \(values).getValue(forKey: \\.\(property.name))"
            case .condition(let line): line
            case .property, .constraint: nil
            }
        }.joined(separator: "\n")
    }

    /// Constants with an initial value have got that value, in place of which those of stored objects belong.
    private static func constants(of declaration: ModelDeclaration, from values: String) -> String {
        declaration.members.compactMap { member in
            switch member {
            case .property(let property) where property.isConstant && property.initialValue != nil:
                "    _restoreConstant(\(values).getValue(forKey: \\.\(property.name)), "
                    + "named: \"\(property.bareName)\", of: \(declaration.name).self)"
            case .condition(let line): line
            case .property, .constraint: nil
            }
        }.joined(separator: "\n")
    }

    /// The schema, with one statement for each property: the type checker's work grows with the size of a statement.
    ///
    /// The key paths of a class that has subclasses begin with the subclass that asks, because those are the key paths
    /// that a program writes for inherited properties.
    private static func metadata(of declaration: ModelDeclaration) -> String {
        let name = declaration.name
        let type = "[SwiftData.Schema.PropertyMetadata]"
        var lines: [String]
        if declaration.isFinal, !declaration.isSubclass {
            lines = ["public static var schemaMetadata: \(type) {", "    var metadata: \(type) = []"]
        } else {
            lines = [
                "public \(declaration.isSubclass ? "override " : "")class var schemaMetadata: \(type) {",
                "    func own<_M: \(name)>(_: _M.Type) -> \(type) {", "    var metadata: \(type) = []",
            ]
        }
        let root = declaration.isFinal ? name : "_M"
        for member in declaration.members {
            switch member {
            case .condition(let line): lines.append(line)
            case .property(let property): lines.append(entry(of: property, in: root))
            case .constraint(let macro, let arguments):
                let generic = arguments.hasPrefix("<") ? "" : "<\(name)>"
                lines.append(
                    "    metadata.append(SwiftData.Schema.PropertyMetadata(name: \"\", keypath: \\\(name).self, "
                        + "defaultValue: nil, metadata: SwiftData.Schema.\(macro)\(generic)\(arguments)))"
                )
            }
        }
        lines.append("    return metadata")
        if !declaration.isFinal || declaration.isSubclass {
            lines += ["    }", "    return \(declaration.isSubclass ? "super.schemaMetadata + " : "")own(Self.self)"]
        }
        lines.append("}")
        return lines.joined(separator: "\n")
    }

    private static func entry(of property: ModelProperty, in name: String) -> String {
        let value = property.initialValue.map { value in
            // An `if` or `switch` is an expression in a closure, but not in parentheses.
            let isStatement = ["if ", "switch "].contains { value.hasPrefix($0) }
            let expression = isStatement ? "{ \(value) }()" : value
            return property.type.map { "(\(expression)) as \($0.source)" } ?? expression
        }
        let described = ["Attribute", "Relationship"].first { property.attributes[$0] != nil }
        let metadata = described.map { "SwiftData.Schema.\($0)(\(property.attributes[$0] ?? ""))" }
        return "    metadata.append(SwiftData.Schema.PropertyMetadata(name: \"\(property.bareName)\", "
            + "keypath: \\\(name).\(property.name), defaultValue: \(value ?? "nil"), metadata: \(metadata ?? "nil")))"
    }

    // MARK: - Attributes of members

    private static func memberAttribute(_ request: ExpansionRequest) throws(Diagnostic) -> Expansion {
        var cursor = Cursor(request.declaration)
        guard let property = ModelProperty(reading: &cursor), property.isPersisted, !property.isConstant,
            property.attributes["_PersistedProperty"] == nil
        else { return Expansion(source: "") }
        let isTransformable = property.attributes["Attribute"]?.contains(".transformable") == true
        return Expansion(
            source: isTransformable ? "@SwiftData._TransformablePersistedProperty" : "@SwiftData._PersistedProperty"
        )
    }

    // MARK: - Conformance

    private static func conformance(_ request: ExpansionRequest) -> String {
        // A subclass has the conformances of its superclass.
        guard let type = request.extendedType, request.missingConformances?.contains("PersistentModel") == true else {
            return ""
        }
        // Contexts use the conformance on their own queues, also in a module whose declarations belong to the main actor.
        return """
            nonisolated extension \(type): SwiftData.PersistentModel, SwiftData.Observable {
            }

            @available(*, unavailable, message: "PersistentModels are not Sendable, use the ModelContext's actor or the persistentModelID")
            nonisolated extension \(type): Sendable {
            }
            """
    }
}

/// `@_PersistedProperty`: the accessors of a property whose value is in the backing of its object.
///
/// `@Model` puts it before each stored property.
enum PersistedPropertyMacro {
    static func expand(_ request: ExpansionRequest, transformable: Bool) -> Expansion {
        var cursor = Cursor(request.declaration)
        guard let property = ModelProperty(reading: &cursor) else {
            return Expansion(diagnostics: [Diagnostic("@Model does not understand this property.", at: cursor.range)])
        }
        let constants = transformable ? nil : Constants(of: property, in: request.surroundings)
        switch request.role {
        case "peer":
            let storage = "@SwiftData.Transient\nprivate var _\(property.bareName): _SwiftDataNoType"
            return Expansion(source: [storage, constants?.source].compactMap { $0 }.joined(separator: "\n\n"))
        case "accessor": return Expansion(source: accessors(of: property, constants, transformable))
        default: return Expansion(diagnostics: [Diagnostic("The role '\(request.role)' is unknown.", at: 0..<0)])
        }
    }

    private static func accessors(of property: ModelProperty, _ constants: Constants?, _ transformable: Bool) -> String
    {
        let (name, key) = (property.name, constants.map { "Self.\($0.key).path" } ?? "\\.\(property.name)")
        let (get, set) = transformable ? ("getTransformableValue", "setTransformableValue") : ("getValue", "setValue")
        let underscore = constants == nil ? "" : "_"
        let end = constants.map { ", at: Self.\($0.place), by: _$link)" } ?? ")"
        return """
            @storageRestrictions(accesses: _$storage, initializes: _\(property.bareName))
            init(initialValue) {
                _$storage.initialize(initialValue) { $0.\(set)(forKey: \\.\(name), to: $1) }
                _\(property.bareName) = _SwiftDataNoType()
            }
            get {
                _$observers.access(self, keyPath: \(key))
                return self.\(underscore)\(get)(forKey: \\.\(name)\(end)
            }
            set {
                _$observers.withMutation(of: self, keyPath: \(key)) {
                    self.\(underscore)\(set)(forKey: \\.\(name), to: newValue\(end)
                }
            }
            """
    }

    /// The constants of the class that the accessors of a property use, so that they neither look the property up nor make
    /// its key path at each access.
    private struct Constants {
        let place: String
        let key: String
        let source: String

        /// The constants; `nil` inside of a generic type, which has none.
        init?(of property: ModelProperty, in surroundings: [String]) {
            let headers = surroundings.map { source in
                var cursor = Cursor(source)
                return cursor.readHeader()
            }
            guard let name = headers.first??.name?.text, !headers.contains(where: { $0?.isGeneric == true }) else {
                return nil
            }
            place = "_$place_\(property.bareName)"
            key = "_$key_\(property.bareName)"
            source = """
                @SwiftData.Transient
                nonisolated private static let \(place) = SwiftData._PropertyPlace("\(property.bareName)")

                @SwiftData.Transient
                nonisolated private static let \(key) = SwiftData._PropertyKey(\\\(name).\(property.name))
                """
        }
    }
}

/// `@ModelActor`: an actor with a separate context.
enum ModelActorMacro {
    static func expand(_ request: ExpansionRequest) -> Expansion {
        switch request.role {
        case "member":
            var cursor = Cursor(request.declaration)
            guard let header = cursor.readHeader(), header.keyword.text == "actor" else {
                return Expansion(
                    diagnostics: [
                        Diagnostic("@ModelActor can only stand on an actor.", at: Cursor(request.declaration).range)
                    ]
                )
            }
            let access =
                header.modifiers.map(\.text).first { ["public", "package"].contains($0) }.map { "\($0) " } ?? ""
            return Expansion(
                source: """
                    \(access)nonisolated let modelExecutor: any SwiftData.ModelExecutor

                    \(access)nonisolated let modelContainer: SwiftData.ModelContainer

                    \(access)init(modelContainer: SwiftData.ModelContainer) {
                        let modelContext = SwiftData.ModelContext(modelContainer)
                        self.modelExecutor = SwiftData.DefaultSerialModelExecutor(modelContext: modelContext)
                        self.modelContainer = modelContainer
                    }
                    """
            )
        default:
            guard let type = request.extendedType else { return Expansion(source: "") }
            return Expansion(source: "nonisolated extension \(type): SwiftData.ModelActor {\n}")
        }
    }
}
